/** All that can be played, and the gallery: one planted bug for each rule. */
import type { Case } from "./case.ts";
import { RULE_SCRIPTS, SCENARIOS } from "./scenarios.ts";
import { SEED_RULES } from "./seed-rules.ts";

export { SCENARIOS } from "./scenarios.ts";

export const RULES: readonly Case[] = [...SCENARIOS, ...RULE_SCRIPTS, ...SEED_RULES];

export function caseById(id: string): Case | null {
  return RULES.find((each) => each.id === id) ?? null;
}

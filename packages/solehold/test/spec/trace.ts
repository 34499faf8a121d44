/** States of a trace in the Informal Trace Format, as plain values. */
import type { RawTrace } from "./quint.ts";

export interface ModelRecord {
  readonly holder: string;
  readonly generation: number;
  readonly expires: number;
  readonly state: "absent" | "held" | "released";
}

export interface ModelMessage {
  readonly by: string;
  readonly op: "acquire" | "renew" | "release";
  readonly sentAt: number;
  readonly decidedAt: number;
  readonly expects: number;
  readonly next: ModelRecord;
  readonly awaited: boolean;
}

export interface ModelWrite {
  readonly by: string;
  readonly fence: number;
}

export interface ModelState {
  readonly action: string;
  /** Who was refused what, or crashed; only for those two actions. */
  readonly who: string;
  readonly op: ModelMessage["op"];
  readonly now: number;
  readonly clock: Readonly<Record<string, number>>;
  readonly record: ModelRecord;
  readonly floor: number;
  readonly belief: Readonly<Record<string, { readonly generation: number; readonly until: number }>>;
  readonly requests: readonly ModelMessage[];
  readonly replies: readonly ModelMessage[];
  readonly writes: readonly ModelWrite[];
  readonly newest: number;
}

export function statesOf(trace: RawTrace): readonly ModelState[] {
  return trace.states.map((raw) => {
    const state: Record<string, unknown> = { action: raw["mbt::actionTaken"] };
    for (const [name, value] of Object.entries(raw))
      if (name.startsWith("shipped::lease::")) state[name.slice("shipped::lease::".length)] = plain(value);
    const picks = plain(raw["mbt::nondetPicks"]) as Record<string, { value: unknown }>;
    return { ...state, who: picks.who?.value, op: picks.op?.value } as ModelState;
  });
}

function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const tagged = value as Record<string, unknown>;
  if ("#bigint" in tagged) return Number(tagged["#bigint"]);
  if ("#set" in tagged) return (tagged["#set"] as unknown[]).map(plain);
  if ("#tup" in tagged) return (tagged["#tup"] as unknown[]).map(plain);
  if ("#map" in tagged)
    return Object.fromEntries(
      (tagged["#map"] as [string, unknown][]).map(([key, each]) => [key, plain(each)]),
    );
  return Object.fromEntries(Object.entries(tagged).map(([key, each]) => [key, plain(each)]));
}

/** A message, whoever waits for it, as text. */
export function textOf(message: ModelMessage | ModelWrite): string {
  return JSON.stringify(
    message,
    Object.keys(message).concat("holder", "generation", "expires", "state").sort(),
  );
}

export function added<Item extends ModelMessage | ModelWrite>(
  before: readonly Item[],
  after: readonly Item[],
) {
  const known = new Set(before.map(textOf));
  return after.filter((each) => !known.has(textOf(each)));
}

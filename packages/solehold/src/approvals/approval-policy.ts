/**
 * The approval policy: which keys need whose consent. Read from a file, checked as a whole, every problem
 * listed with the place it is at; a policy that exists can be met.
 *
 * Rules are tried in order, the first whose tenant and pattern fit is used; a key without a rule needs no
 * approval. The tier comes from here and never from a caller.
 */

import { type FieldProblem, isObject } from "../core/field-problem.ts";
import { isPurpose, PURPOSES, type Purpose } from "../core/index.ts";
import {
  Quorum,
  type QuorumConfig,
  type QuorumThresholds,
  SAFETY_TIERS,
  type SafetyTier,
  type SignerConfig,
} from "./index.ts";
import { unknownFields } from "./quorum-definition.ts";

export type GuardedAction = "acquire" | "revoke" | "break";
const ACTIONS: readonly GuardedAction[] = ["acquire", "revoke", "break"];

/** As written in the file. */
export interface ApprovalPolicyFile {
  readonly signers: readonly SignerConfig[];
  readonly thresholds?: QuorumThresholds;
  readonly mode?: QuorumConfig["mode"];
  readonly rules: readonly ApprovalRuleConfig[];
}

export interface ApprovalRuleConfig {
  /** A key name in which `*` stands for any characters. */
  readonly pattern: string;
  /** Default: every tenant. */
  readonly tenant?: string;
  readonly tier: string;
  /** What needs approval. Default: all of acquire, revoke, break. */
  readonly actions?: readonly string[];
  readonly minTtlMs?: number;
  readonly maxTtlMs?: number;
  readonly purposes?: readonly string[];
  /** Only these of the signers count. Default: all. */
  readonly signers?: readonly string[];
  readonly thresholds?: QuorumThresholds;
}

export interface ApprovalRule {
  readonly tier: SafetyTier;
  readonly actions: ReadonlySet<GuardedAction>;
  readonly minTtlMs: number;
  readonly maxTtlMs: number;
  readonly purposes: ReadonlySet<Purpose>;
  readonly quorum: Quorum;
  matches(tenant: string, name: string): boolean;
}

/** What asks for approvals: a policy, or whatever stands for the current one. */
export interface ApprovalRules {
  ruleFor(tenant: string, name: string): ApprovalRule | null;
}

export type ApprovalPolicyResult =
  | { readonly ok: true; readonly policy: ApprovalPolicy }
  | { readonly ok: false; readonly problems: readonly FieldProblem[] };

const MAX_RULES = 1_000;
const FILE_FIELDS = [
  "signers",
  "thresholds",
  "mode",
  "rules",
] as const satisfies (keyof ApprovalPolicyFile)[];
const RULE_FIELDS = [
  ...(["pattern", "tenant", "tier", "actions", "minTtlMs", "maxTtlMs"] as const),
  ...(["purposes", "signers", "thresholds"] as const),
] satisfies (keyof ApprovalRuleConfig)[];

export class ApprovalPolicy implements ApprovalRules {
  readonly #rules: readonly ApprovalRule[];

  private constructor(rules: readonly ApprovalRule[]) {
    this.#rules = rules;
  }

  /** Total: any value may be passed, such as a parsed file. */
  static define(file: unknown): ApprovalPolicyResult {
    if (!isObject(file)) return failed("policy", "must be an object with signers and rules");
    const config = file as unknown as ApprovalPolicyFile;
    if (!Array.isArray(config.rules) || config.rules.length === 0 || config.rules.length > MAX_RULES) {
      return failed("rules", `must be an array of 1 to ${MAX_RULES} rules`);
    }
    const problems: FieldProblem[] = [...unknownFields(file, FILE_FIELDS, "policy")];
    const rules = config.rules.map((rule, index) => ruleFrom(config, rule, `rules[${index}]`, problems));
    const complete = rules.filter((rule): rule is ApprovalRule => rule !== null);
    if (problems.length > 0) return { ok: false, problems };
    return { ok: true, policy: new ApprovalPolicy(complete) };
  }

  ruleFor(tenant: string, name: string): ApprovalRule | null {
    return this.#rules.find((rule) => rule.matches(tenant, name)) ?? null;
  }
}

function failed(field: string, message: string): ApprovalPolicyResult {
  return { ok: false, problems: [{ field, message }] };
}

function ruleFrom(
  file: ApprovalPolicyFile,
  rule: ApprovalRuleConfig,
  at: string,
  problems: FieldProblem[],
): ApprovalRule | null {
  if (!isObject(rule)) {
    problems.push({ field: at, message: "must be an object with pattern and tier" });
    return null;
  }
  const found = [...unknownFields(rule, RULE_FIELDS, at), ...shapeProblems(rule, at)];
  const quorum = quorumFor(file, rule, at, found);
  problems.push(...found);
  if (found.length > 0 || quorum === null) return null;
  const pattern = globToPattern(rule.pattern);
  return {
    tier: rule.tier as SafetyTier,
    actions: new Set((rule.actions ?? ACTIONS) as readonly GuardedAction[]),
    minTtlMs: rule.minTtlMs ?? 1,
    maxTtlMs: rule.maxTtlMs ?? Number.MAX_SAFE_INTEGER,
    purposes: new Set((rule.purposes ?? PURPOSES) as readonly Purpose[]),
    quorum,
    matches: (tenant, name) => (rule.tenant === undefined || rule.tenant === tenant) && pattern.test(name),
  };
}

function* shapeProblems(rule: ApprovalRuleConfig, at: string): Generator<FieldProblem> {
  const { pattern, tier, actions, purposes, minTtlMs, maxTtlMs, tenant } = rule;
  if (typeof pattern !== "string" || pattern === "") {
    yield { field: `${at}.pattern`, message: "must be a key name, with * for any characters" };
  }
  if (tenant !== undefined && typeof tenant !== "string")
    yield { field: `${at}.tenant`, message: "must be a string" };
  if (!SAFETY_TIERS.some((known) => known === tier)) {
    yield {
      field: `${at}.tier`,
      message: `must be one of ${SAFETY_TIERS.join(", ")}, got ${JSON.stringify(tier)}`,
    };
  }
  if (actions !== undefined && !isListOf(actions, (action) => ACTIONS.some((known) => known === action))) {
    yield { field: `${at}.actions`, message: `must be a list of ${ACTIONS.join(", ")}` };
  }
  if (purposes !== undefined && !isListOf(purposes, isPurpose)) {
    yield { field: `${at}.purposes`, message: `must be a list of ${PURPOSES.join(", ")}` };
  }
  for (const [name, value] of Object.entries({ minTtlMs, maxTtlMs })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1)) {
      yield { field: `${at}.${name}`, message: "must be a whole number of milliseconds, at least 1" };
    }
  }
  if (minTtlMs !== undefined && maxTtlMs !== undefined && minTtlMs > maxTtlMs) {
    yield { field: `${at}.maxTtlMs`, message: `must be at least minTtlMs (${minTtlMs}), got ${maxTtlMs}` };
  }
}

function quorumFor(
  file: ApprovalPolicyFile,
  rule: ApprovalRuleConfig,
  at: string,
  problems: FieldProblem[],
): Quorum | null {
  const all = Array.isArray(file.signers) ? file.signers : [];
  const unknown = (rule.signers ?? []).filter((id) => !all.some(({ signerId }) => signerId === id));
  if (unknown.length > 0) {
    problems.push({
      field: `${at}.signers`,
      message: `names ${unknown.join(", ")}, who is not among the signers`,
    });
    return null;
  }
  const signers =
    rule.signers === undefined ? all : all.filter(({ signerId }) => rule.signers?.includes(signerId));
  const thresholds = rule.thresholds ?? file.thresholds;
  const definition = Quorum.define({
    signers,
    ...(thresholds === undefined ? {} : { thresholds }),
    ...(file.mode === undefined ? {} : { mode: file.mode }),
  });
  if (definition.ok) return definition.quorum;
  problems.push(...definition.problems.map(({ field, message }) => ({ field: `${at}: ${field}`, message })));
  return null;
}

function globToPattern(glob: string): RegExp {
  const literal = glob.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`, "su");
}

function isListOf(value: unknown, test: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(test);
}

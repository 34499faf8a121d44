/**
 * Who asks, and what they may do: an action, in a tenant, on names with a prefix. Everything that reaches
 * the service was allowed here first; nothing is read from the store to find out, so a refusal tells
 * nothing about what exists.
 */
import { DEFAULT_TENANT, type LeaseOp, tenantProblem } from "solehold";
import { forbidden, ProblemError, refusal } from "../protocol/problem.ts";

/** Besides the commands: `read` (get, list, watch, queue), `repair`, `collect`, `audit`, `coordinate`, `metrics`. */
export const ACTIONS = [
  "acquire",
  "renew",
  "release",
  "use",
  "resume",
  "handoff",
  "revoke",
  "break",
  "read",
  "repair",
  "collect",
  "audit",
  "coordinate",
  "metrics",
] as const satisfies readonly (LeaseOp | string)[];

export type Action = (typeof ACTIONS)[number];

export interface Scope {
  /** Null for all tenants. */
  readonly tenants: readonly string[] | null;
  /** Names must begin with one of these; [""] allows all. */
  readonly prefixes: readonly string[];
  readonly actions: ReadonlySet<Action>;
}

export interface Principal {
  /** The API key's id; "local" where none are needed. */
  readonly id: string;
  readonly scope: Scope;
}

/** Without API keys, on loopback only: the user of this machine. */
export const LOCAL_PRINCIPAL: Principal = Object.freeze({
  id: "local",
  scope: Object.freeze({ tenants: null, prefixes: [""], actions: new Set(ACTIONS) }),
});

/** The tenant that a request means, allowed. Throws a ProblemError. */
export function tenantOf({ scope }: Principal, named: string | undefined): string {
  if (named !== undefined) {
    const problem = tenantProblem(named);
    if (problem !== null) throw new ProblemError(refusal("tenant", problem));
    return named;
  }
  if (scope.tenants === null || scope.tenants.includes(DEFAULT_TENANT)) return DEFAULT_TENANT;
  const [only, ...others] = scope.tenants;
  if (only !== undefined && others.length === 0) return only;
  throw new ProblemError(refusal("tenant", "is missing: this API key is for several tenants; name one"));
}

/** Whether every name that begins with `prefix` (for one lease: its name) is within the scope. */
export function isAllowed({ scope }: Principal, action: Action, tenant: string, prefix: string): boolean {
  if (!scope.actions.has(action)) return false;
  if (scope.tenants !== null && !scope.tenants.includes(tenant)) return false;
  return scope.prefixes.some((allowed) => prefix.startsWith(allowed));
}

export function assertAllowed(principal: Principal, action: Action, tenant: string, prefix: string): void {
  if (isAllowed(principal, action, tenant, prefix)) return;
  throw new ProblemError(forbidden(`this API key does not allow '${action}' there`));
}

/** For what concerns no tenant at all. */
export function assertAction({ scope }: Principal, action: Action): void {
  if (scope.actions.has(action)) return;
  throw new ProblemError(forbidden(`this API key does not allow '${action}'`));
}

/** For what concerns all tenants at once: metrics, the proof of the whole audit trail. */
export function assertAllowedEverywhere({ scope }: Principal, action: Action): void {
  const everywhere = scope.tenants === null && scope.prefixes.includes("");
  if (scope.actions.has(action) && everywhere) return;
  throw new ProblemError(forbidden(`this API key does not allow '${action}' for all tenants`));
}

/**
 * Who asks, and what they may do: an action, in a tenant, on names with a prefix. Everything that reaches
 * the service was allowed here first; nothing is read from the store to find out, so a refusal tells
 * nothing about what exists.
 */

import type { LeaseKey } from "solehold";
import {
  DEFAULT_TENANT,
  isReservedName,
  keyNameProblem,
  type LeaseOp,
  MAX_NAME_LENGTH,
  tenantProblem,
} from "solehold/internal";
import { ProblemError, refusal } from "../protocol/problem.ts";
import { AccessDeniedError } from "./refusals.ts";

const COMMANDS = [
  "acquire",
  "renew",
  "release",
  "use",
  "resume",
  "handoff",
  "revoke",
  "break",
] as const satisfies readonly LeaseOp[];

/** Besides the commands: `read` (get, list, watch, queue), `repair`, `collect`, `audit`, `coordinate`, `metrics`. */
export const ACTIONS = [...COMMANDS, "read", "repair", "collect", "audit", "coordinate", "metrics"] as const;

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

/**
 * The server's own tenant: which replicas are alive, and which of them collects. Clients go where the records in it say,
 * with their API keys, so no caller may write there, and only an administrator may look.
 */
export const SYSTEM_TENANT = "solehold";

/** The tenant that a request means. Throws a ProblemError. */
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

/** The lease that a request names, allowed. What is no name does not get as far as the store. Throws a ProblemError. */
export function leaseKeyFor(
  principal: Principal,
  action: Action,
  { tenant: named, name }: { readonly tenant?: string; readonly name: string },
): LeaseKey {
  const tenant = tenantOf(principal, named);
  assertAllowed(principal, action, tenant, name);
  const problem = keyNameProblem(name);
  if (problem !== null) throw new ProblemError(refusal("name", problem));
  return { tenant, name };
}

/** The leases under a prefix that a request may read: an empty prefix means all. Throws a ProblemError. */
export function readableScope(
  principal: Principal,
  { tenant: named, prefix = "" }: { readonly tenant?: string; readonly prefix?: string },
): { readonly tenant: string; readonly prefix: string } {
  const tenant = tenantOf(principal, named);
  assertAllowed(principal, "read", tenant, prefix);
  if (prefix.length > MAX_NAME_LENGTH)
    throw new ProblemError(refusal("prefix", `must have at most ${MAX_NAME_LENGTH} characters`));
  if (isReservedName(prefix))
    throw new ProblemError(refusal("prefix", "must not begin with '$': those names are reserved"));
  return { tenant, prefix };
}

/** Whether every name that begins with `prefix` (for one lease: its name) is within the scope. */
export function isAllowed(principal: Principal, action: Action, tenant: string, prefix: string): boolean {
  const { scope } = principal;
  if (!scope.actions.has(action)) return false;
  if (tenant === SYSTEM_TENANT) return !isCommand(action) && isAdministrator(principal);
  if (scope.tenants !== null && !scope.tenants.includes(tenant)) return false;
  return scope.prefixes.some((allowed) => prefix.startsWith(allowed));
}

export function assertAllowed(principal: Principal, action: Action, tenant: string, prefix: string): void {
  if (isAllowed(principal, action, tenant, prefix)) return;
  if (tenant === SYSTEM_TENANT) {
    const detail = `the tenant '${SYSTEM_TENANT}' is the server's own: use another one`;
    throw new AccessDeniedError(detail, action, tenant, prefix);
  }
  throw new AccessDeniedError(`this API key does not allow '${action}' there`, action, tenant, prefix);
}

/** For what concerns no tenant at all. */
export function assertAction({ scope }: Principal, action: Action): void {
  if (scope.actions.has(action)) return;
  throw new AccessDeniedError(`this API key does not allow '${action}'`, action, SYSTEM_TENANT, "");
}

/** For what concerns all tenants at once: metrics, the proof of the whole audit trail. */
export function assertAllowedEverywhere(principal: Principal, action: Action): void {
  if (principal.scope.actions.has(action) && isEverywhere(principal)) return;
  const detail = `this API key does not allow '${action}' for all tenants`;
  throw new AccessDeniedError(detail, action, SYSTEM_TENANT, "");
}

function isEverywhere({ scope }: Principal): boolean {
  return scope.tenants === null && scope.prefixes.includes("");
}

/** Every action, everywhere. */
function isAdministrator(principal: Principal): boolean {
  return isEverywhere(principal) && ACTIONS.every((action) => principal.scope.actions.has(action));
}

function isCommand(action: Action): boolean {
  return (COMMANDS as readonly Action[]).includes(action);
}

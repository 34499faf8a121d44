/** The options of `Leases`, and the check that a program without a type checker gave only known ones. */
import type { Duration, Purpose } from "../core/index.ts";
import type { PresentedApprovals } from "../executor/index.ts";
import type { LivenessProbe } from "./probe.ts";

export interface TryAcquireOptions {
  /** How long the lease lasts without a renewal: milliseconds, or "30s". Default: the policy's, 30 s. */
  readonly ttl?: Duration;
  /** What the lease is for; `use` is refused for another purpose. Default "Operation". */
  readonly purpose?: Purpose;
  /** Who shall hold it. Default: the holder of this Leases object. */
  readonly holder?: string;
  /** The term of the grant, for writers that are fenced by terms. Default: the policy's base term. */
  readonly term?: bigint;
  /** Free text for people who look at the lease, up to 512 characters. */
  readonly note?: string;
  /** The same key again gets the same grant, over restarts of this process too. Up to 128 characters. */
  readonly idempotencyKey?: string;
  /** Consent of signers to this very request, for a key that needs it. Refused where nothing checks approvals. */
  readonly approval?: PresentedApprovals;
  /** Asked before each renewal; false, a throw or silence stops renewing, and the lease ends by its ttl. */
  readonly probe?: LivenessProbe;
  /** False leaves renewing to `lease.renew()`. Default true. */
  readonly autoRenew?: boolean;
  /** True keeps the process from ending while the lease is held. Default false; true in `run` and `elect`. */
  readonly keepAlive?: boolean;
}

export interface AcquireOptions extends TryAcquireOptions {
  /** How long to wait for a lease that somebody else has; 0 fails at once. Default 10 s. */
  readonly wait?: Duration | "forever";
  /** Stops waiting: `acquire` then throws the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface CloseOptions {
  /** True releases the leases that are still held. Default false: they end by their ttl. */
  readonly release?: boolean;
}

const TRY_ACQUIRE = new Set<string>([
  "ttl",
  "purpose",
  "holder",
  "term",
  "note",
  "idempotencyKey",
  "approval",
  "probe",
  "autoRenew",
  "keepAlive",
] satisfies readonly (keyof TryAcquireOptions)[]);
export const TRY_ACQUIRE_OPTIONS: ReadonlySet<string> = TRY_ACQUIRE;
export const ACQUIRE_OPTIONS: ReadonlySet<string> = new Set([
  ...TRY_ACQUIRE,
  ...(["wait", "signal"] satisfies readonly (keyof AcquireOptions)[]),
]);
const BOOLEANS = ["autoRenew", "keepAlive", "release"] as const;

/** Throws a TypeError for an option that does not exist, or that is not a boolean where one is expected. */
export function checkOptions(what: string, options: object, known: ReadonlySet<string>): void {
  for (const name of Object.keys(options)) {
    if (!known.has(name))
      throw new TypeError(`${what} has no option '${name}': it knows ${[...known].join(", ")}`);
  }
  const given = options as { readonly [name: string]: unknown };
  for (const name of BOOLEANS) {
    const value = given[name];
    if (value !== undefined && typeof value !== "boolean")
      throw new TypeError(`${name} must be true or false, got ${JSON.stringify(value)}`);
  }
}

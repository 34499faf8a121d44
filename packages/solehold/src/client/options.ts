/** The options of `Leases`, and the check that a program without a type checker gave only known ones. */
import type { PresentedApprovals } from "../approvals/index.ts";
import type { Duration, Purpose, Reason } from "../core/index.ts";
import type { WaitingDetails } from "../executor/index.ts";

export interface AcquireOptions {
  /** How long the lease lasts without a renewal: milliseconds, or "30s". Default: the policy's, 30 s. */
  readonly ttl?: Duration;
  /** What the lease is for; `use` is refused for another purpose. Default "Operation". */
  readonly purpose?: Purpose;
  /** Who shall hold it. Default: the holder of this Leases object. */
  readonly holder?: string;
  /** The term of the grant, for writers that are fenced by terms. Default: the policy's base term. */
  readonly term?: bigint;
  /**
   * How many may hold the name at a time: the grant is one of so many slots, each with its own fence; `lease.slot` says
   * which. All should name the same number; see docs/using-leases.md for changing it. Default 1.
   */
  readonly slots?: number;
  /** Free text for people who look at the lease, up to 512 characters. */
  readonly note?: string;
  /** Data of programs about the lease, by name: every reader of the lease sees it. Default: none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Nobody may claim the key for so long after the grant, even if the lease is released or expires before: once per
   * period. Refused by a store without a clock (etcd). Default 0.
   */
  readonly holdAtLeast?: Duration;
  /**
   * Nobody may claim the key for so long after this lease expired, so that what its holder had under way can arrive. Not
   * after a release. Default: the policy's, 0.
   */
  readonly lockDelay?: Duration;
  /** The same key again gets the same grant, over restarts of this process too. Up to 128 characters. */
  readonly idempotencyKey?: string;
  /** Consent of signers to this very request, for a key that needs it. Refused where nothing checks approvals. */
  readonly approval?: PresentedApprovals;
  /** Asked before each renewal; false, a throw or silence stops renewing, and the lease ends by its ttl. */
  readonly probe?: () => boolean | Promise<boolean>;
  /** False leaves renewing to `lease.renew()`. Default true. */
  readonly autoRenew?: boolean;
  /** True keeps the process from ending while the lease is held. Default false; true in `run` and `elect`. */
  readonly keepAlive?: boolean;
  /** How long to wait for a lease that somebody else has; 0 fails at once. Default 10 s. */
  readonly wait?: Duration | "forever";
  /**
   * Among those who wait, the higher one is served first: 0 to 100, default 0. Who has waited for 30 s is passed by nobody
   * any more.
   */
  readonly priority?: number;
  /** Stops waiting: `acquire` then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Called when the acquire has to wait, and when its position changes: who holds the lease, and who is ahead. */
  readonly onWaiting?: (details: WaitingDetails) => void;
}

/** One attempt waits for nothing. */
export type TryAcquireOptions = Omit<AcquireOptions, "wait" | "priority" | "signal" | "onWaiting">;

/**
 * Of `acquireAll`: for each of the leases, but `wait` and `signal`, which are for all of them together. No `holdAtLeast`:
 * a name that is released because another one is taken would stay closed.
 */
export type AcquireAllOptions = Omit<AcquireOptions, (typeof OF_ONE_LEASE)[number]>;

export interface OncePerOptions extends Omit<TryAcquireOptions, "holdAtLeast"> {
  /** How often the work may run: milliseconds, or "1h". */
  readonly period: Duration;
}

/** The work ran here; or it did not, because it ran in this period already, or runs at this moment. */
export type OncePerResult<Result> =
  | { readonly ran: true; readonly result: Result }
  | {
      readonly ran: false;
      readonly reason: Reason;
      /** Who runs it at this moment; null when it has run already. */
      readonly holder: string | null;
      /** When it may run again, in milliseconds from now, if nothing happens before. */
      readonly retryAfterMs: number | null;
    };

export interface WatchOptions {
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  /** How often a store that cannot announce changes is polled. Default 1 s. */
  readonly every?: Duration;
}

const OF_ONE_LEASE = ["idempotencyKey", "approval", "holdAtLeast"] as const;

const TRY_ACQUIRE = new Set<string>([
  "ttl",
  "purpose",
  "holder",
  "term",
  "note",
  "metadata",
  "slots",
  "holdAtLeast",
  "lockDelay",
  "idempotencyKey",
  "approval",
  "probe",
  "autoRenew",
  "keepAlive",
] satisfies readonly (keyof TryAcquireOptions)[]);
export const TRY_ACQUIRE_OPTIONS: ReadonlySet<string> = TRY_ACQUIRE;
export const ACQUIRE_OPTIONS: ReadonlySet<string> = new Set([
  ...TRY_ACQUIRE,
  ...(["wait", "priority", "signal", "onWaiting"] satisfies readonly (keyof AcquireOptions)[]),
]);
export const ACQUIRE_ALL_OPTIONS: ReadonlySet<string> = new Set(
  [...ACQUIRE_OPTIONS].filter((name) => !OF_ONE_LEASE.some((each) => each === name)),
);
export const ONCE_PER_OPTIONS: ReadonlySet<string> = new Set(
  [...TRY_ACQUIRE, "period"].filter((name) => name !== "holdAtLeast"),
);
export const LIST_OPTIONS: ReadonlySet<string> = new Set(["prefix", "holder", "state"]);
export const REVOKE_OPTIONS: ReadonlySet<string> = new Set(["fence"]);
export const BREAK_OPTIONS: ReadonlySet<string> = new Set(["period", "fence"]);
const BOOLEANS = ["autoRenew", "keepAlive", "release"] as const;

/** Throws a TypeError for an option that does not exist, or that is not a boolean where one is expected. */
export function checkOptions(what: string, options: object, known: ReadonlySet<string>): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${what} takes an object of options, got ${String(options)}`);
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

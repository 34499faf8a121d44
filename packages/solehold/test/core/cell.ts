/**
 * A store of one key for tests of `decide`: a record, its version, and compare-and-swap. Commands come
 * from short builders, so that a test reads as the story it tells.
 *
 * Every input is frozen before it is decided upon, so a decision that mutates anything throws.
 */
import {
  type AcquireCommand,
  type BreakCommand,
  DEFAULT_POLICY,
  type Decided,
  decide,
  exactly,
  type HandoffCommand,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseSnapshot,
  type ReleaseCommand,
  type RenewCommand,
  type ResumeCommand,
  type RevokeCommand,
  type StoreInstant,
  type UseCommand,
} from "../../src/core/index.ts";

export const KEY: LeaseKey = Object.freeze({ tenant: "acme", name: "orders/42" });

/** 43 characters of the right alphabet, different for different short texts. */
export function hashOf(text: string): string {
  return `${text}:`.padEnd(43, "0");
}

export function acquire(holder: string, fields: Partial<AcquireCommand> = {}): AcquireCommand {
  return {
    op: "acquire",
    key: KEY,
    nonce: `nonce-${holder}`,
    holder,
    purpose: "Operation",
    ttlMs: 5_000,
    tokenHash: hashOf(holder),
    ...fields,
  };
}

function owner(holder: string): Pick<ReleaseCommand, "key" | "nonce" | "holder" | "tokenHash"> {
  return { key: KEY, nonce: `nonce-${holder}`, holder, tokenHash: hashOf(holder) };
}

export function renew(holder: string, fields: Partial<RenewCommand> = {}): RenewCommand {
  return { op: "renew", ...owner(holder), ttlMs: 5_000, ...fields };
}

export function release(holder: string, fields: Partial<ReleaseCommand> = {}): ReleaseCommand {
  return { op: "release", ...owner(holder), ...fields };
}

export function use(holder: string, fields: Partial<UseCommand> = {}): UseCommand {
  return { op: "use", ...owner(holder), purpose: "Operation", ...fields };
}

export function resume(holder: string, fields: Partial<ResumeCommand> = {}): ResumeCommand {
  return { op: "resume", ...owner(holder), ...fields };
}

export function handoff(
  holder: string,
  successor: string,
  fields: Partial<HandoffCommand> = {},
): HandoffCommand {
  return { op: "handoff", ...owner(holder), successor, withinMs: 1_000, ...fields };
}

export function revoke(fields: Partial<RevokeCommand> = {}): RevokeCommand {
  return { op: "revoke", key: KEY, nonce: "nonce-operator", ...fields };
}

export function breakLease(periodMs: number, fields: Partial<BreakCommand> = {}): BreakCommand {
  return { op: "break", key: KEY, nonce: "nonce-operator", periodMs, ...fields };
}

/** "granted", or the reason against it. */
export function outcome({ decision }: Decided): string {
  return decision.kind === "granted" ? "granted" : decision.reason;
}

/** The lease of a grant; a test that expects one fails here when there is none. */
export function leaseOf({ decision }: Decided): LeaseRecord {
  if (decision.kind !== "granted") throw new Error(`expected a grant, got ${decision.reason}`);
  return decision.lease;
}

export function freeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const field of Object.values(value)) freeze(field);
  }
  return value;
}

/** Generations 1, 2, 3 are what the seeds' vectors name. */
export const COUNTED: LeasePolicy = Object.freeze({ ...DEFAULT_POLICY, generations: "count" });

export class Cell {
  readonly policy: LeasePolicy;
  record: LeaseRecord | null = null;
  version = 0;
  floor = 0n;

  constructor(policy: LeasePolicy = COUNTED) {
    this.policy = policy;
  }

  get snapshot(): LeaseSnapshot {
    return freeze({ record: this.record, floor: this.floor });
  }

  /** Decides on what is stored now; writes nothing. */
  ask(command: LeaseCommand, now: number | StoreInstant): Decided {
    const instant = typeof now === "number" ? exactly(now) : now;
    return decide(freeze(command), this.snapshot, freeze(instant), this.policy);
  }

  /** Decides on what is stored now and writes the effect before anybody else can. */
  run(command: LeaseCommand, now: number | StoreInstant): Decided {
    const decided = this.ask(command, now);
    this.apply(decided, this.version);
    return decided;
  }

  /** Compare and swap: false when the version has moved since the decision. */
  apply({ effect }: Decided, expected: number): boolean {
    if (effect.kind === "none") return true;
    if (expected !== this.version) return false;
    this.record = effect.kind === "delete" ? null : effect.record;
    this.version += 1;
    return true;
  }

  /** An old record is collected: the floor remembers its generation, then it goes. */
  collect(): void {
    if (this.record === null) return;
    if (this.record.generation > this.floor) this.floor = this.record.generation;
    this.record = null;
    this.version += 1;
  }
}

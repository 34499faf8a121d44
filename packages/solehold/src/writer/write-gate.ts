/**
 * A database instance that may write only while it holds the writer lease.
 *
 * Without the lease it is attached read-only: the gate says not_held and every write is refused. The gate
 * reads the clocks: it closes by itself when the lease can no longer be believed, also when the store
 * never answers again. What is lost is lost for good: the drain callback runs exactly once.
 */

import type { Lease } from "../client/lease.ts";
import type { Leases } from "../client/leases.ts";
import type { Duration } from "../core/index.ts";
import { given } from "../support/given.ts";

export type WriteGateState = "not_required" | "held" | "not_held";

export interface WriterAuditEvent {
  readonly action: "lease/acquire" | "lease/release" | "lease/lost";
  readonly databaseKey: string;
  readonly holderId: string;
  readonly fence: bigint;
  readonly reason: string;
}

export interface WriterInstanceOptions {
  readonly leases: Leases;
  readonly databaseKey: string;
  /** "required": nothing is written without the lease. "not_required": the gate is always open. */
  readonly lease: "required" | "not_required";
  readonly ttl?: Duration;
  readonly term?: bigint;
  /** Called once when the lease is lost: finish nothing, stop writing, shut down. */
  readonly onDrain: (reason: string) => void;
  readonly onAudit?: (event: WriterAuditEvent) => void;
}

export class WriteRefusedError extends Error {
  override readonly name = "WriteRefusedError";
}

export class WriterInstance {
  readonly #options: WriterInstanceOptions;
  #lease: Lease | null = null;
  #drained = false;

  constructor(options: WriterInstanceOptions) {
    this.#options = options;
  }

  get state(): WriteGateState {
    if (this.#options.lease === "not_required") return "not_required";
    return this.#lease?.isHeld() === true ? "held" : "not_held";
  }

  /** The fence to stamp on what is written; null while there is none. */
  get fence(): bigint | null {
    return this.#lease === null ? null : this.#lease.fence;
  }

  /** Boots as the writer, or stays attached read-only and says who writes. */
  async attach(): Promise<{ readonly writer: boolean; readonly holder: string | null }> {
    const { leases, databaseKey, lease, ttl, term } = this.#options;
    if (lease === "not_required") return { writer: true, holder: null };
    const attempt = await leases.tryAcquire(databaseKey, {
      purpose: "StateWrite",
      keepAlive: true,
      ...given({ ttl, term }),
    });
    if (!attempt.ok) return { writer: false, holder: attempt.holder };
    this.#lease = attempt.lease;
    this.#audit("lease/acquire", attempt.lease, "acquired");
    attempt.lease.signal.addEventListener("abort", () => this.#onEnd(attempt.lease), { once: true });
    return { writer: true, holder: attempt.lease.holder };
  }

  /** Throws unless this instance may write at this very moment. */
  assertWritable(): void {
    if (this.state !== "not_held") return;
    const { databaseKey } = this.#options;
    throw new WriteRefusedError(
      `${databaseKey} is read-only here: this instance does not hold its writer lease`,
    );
  }

  async release(): Promise<void> {
    await this.#lease?.release();
  }

  /** Releases the lease and closes `leases`, for an instance that does not share them. */
  async close(): Promise<void> {
    await this.release();
    await this.#options.leases.close();
  }

  #onEnd(lease: Lease): void {
    if (lease.lossReason === "released") {
      this.#audit("lease/release", lease, "released");
      return;
    }
    const reason = lease.lossReason ?? "expired";
    this.#audit("lease/lost", lease, reason);
    if (this.#drained) return;
    this.#drained = true;
    this.#options.onDrain(reason);
  }

  #audit(action: WriterAuditEvent["action"], { holder, fence }: Lease, reason: string): void {
    const { databaseKey, onAudit } = this.#options;
    onAudit?.({ action, databaseKey, holderId: holder, fence, reason });
  }
}

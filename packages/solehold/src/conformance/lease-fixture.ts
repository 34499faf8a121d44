/** What the cases about leases share: executors with wrong clocks, grants, and waiting for one. */
import { ok } from "node:assert/strict";
import { DEFAULT_DRIFT, type LeaseRecord, recordFence, validityFrom } from "../core/index.ts";
import { delay } from "../env/index.ts";
import { type CommandOutcome, StoreExecutor } from "../executor/index.ts";
import type { LeaseStore } from "../store/index.ts";
import { ShiftedEnv } from "./shifted-env.ts";
import type { StoreBench } from "./store-fixture.ts";

export const PAUSE_MS = 10;

export interface Grant {
  readonly lease: LeaseRecord;
  readonly token: string;
  readonly fence: bigint;
  /** On the monotonic clock of this machine: from here on its holder knows that it may be another's. */
  readonly believedUntilMs: number;
}

export function executorOn(bench: StoreBench, store: LeaseStore, wallShiftMs = 0, retentionMs = 3_600_000) {
  const env = new ShiftedEnv(bench.env, wallShiftMs);
  return new StoreExecutor({ store, env, retentionMs });
}

export function describeOutcome(outcome: CommandOutcome): string {
  if (outcome.kind === "unsettled") return `unsettled (${outcome.cause.message})`;
  return outcome.kind === "refused" ? `refused (${outcome.decision.reason})` : "applied";
}

export function claimGranted(outcome: CommandOutcome, what: string): Grant {
  if (outcome.kind !== "applied")
    throw new Error(`${what}: expected a grant, got ${describeOutcome(outcome)}`);
  const { lease } = outcome.decision;
  const belief = validityFrom(outcome.believedFrom, outcome.validForMs, DEFAULT_DRIFT);
  return {
    lease,
    token: outcome.token,
    fence: recordFence(lease),
    believedUntilMs: belief.monotonicEndMs,
  };
}

export async function acquire(bench: StoreBench, executor: StoreExecutor, holder: string, ttlMs: number) {
  return executor.execute({ op: "acquire", key: bench.key("lease"), holder, ttlMs });
}

/** Asks again and again until it is granted, within the kit's patience. */
export async function acquireInTheEnd(
  bench: StoreBench,
  executor: StoreExecutor,
  holder: string,
  ttlMs: number,
): Promise<Grant> {
  const attempt = async (): Promise<Grant> => {
    for (;;) {
      const outcome = await acquire(bench, executor, holder, ttlMs);
      if (outcome.kind === "applied") return claimGranted(outcome, holder);
      ok(outcome.kind === "refused", `${holder}: ${describeOutcome(outcome)}`);
      await delay(bench.env, PAUSE_MS);
    }
  };
  return bench.inTime(`the lease never came to ${holder}`, attempt());
}

/** Nobody else may have been granted the lease while its last holder could believe in it, nor for so long after that. */
export function claimNotBefore(bench: StoreBench, { believedUntilMs }: Grant, closedMs = 0): void {
  const earlyMs = believedUntilMs + closedMs - bench.env.monotonicMs();
  const end = closedMs === 0 ? "its holder's belief in it ended" : `${closedMs} ms after its time were over`;
  ok(earlyMs <= 0, `the lease went to another ${earlyMs} ms before ${end}`);
}

/** Short, but not below what the store's clock can tell. */
export function shortTtlMs(store: LeaseStore): number {
  return 300 + store.capabilities.clockGranularityMs;
}

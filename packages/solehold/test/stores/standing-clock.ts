import { expect } from "vitest";
import { type Env, realEnv } from "../../src/env/index.ts";
import type { ConditionalWrite, LeaseStore } from "../../src/store/index.ts";
import { create, recordOf, writeOf } from "./records.ts";

/** The real world, but for a monotonic clock that stands still unless a test moves it. */
export function standingClock(): { readonly env: Env; advance(byMs: number): void } {
  let monotonicMs = 1_000;
  const env: Env = {
    monotonicMs: () => monotonicMs,
    wallMs: () => realEnv.wallMs(),
    timer: (delayMs, callback, options) => realEnv.timer(delayMs, callback, options),
    defer: (callback) => realEnv.defer(callback),
    randomBytes: (length) => realEnv.randomBytes(length),
    random: () => realEnv.random(),
  };
  return {
    env,
    advance: (byMs) => {
      monotonicMs += byMs;
    },
  };
}

/** Whether it is a time of today, in milliseconds. */
export function isTime(value: number | null): boolean {
  return Number.isSafeInteger(value) && Math.abs((value ?? 0) - realEnv.wallMs()) < 86_400_000;
}

/** What shows somebody's record tells the time: a conflict, alone or in a batch, also one of `late`, a read, a listing. */
export async function expectTimeWithRecords(
  store: LeaseStore,
  late: readonly ConditionalWrite[] = [],
): Promise<void> {
  const record = recordOf("shown");
  await create(store, record);
  const write = writeOf(recordOf("shown"));
  for (const batch of [
    ...late.map((each) => [each]),
    [write],
    [writeOf(recordOf("shown/beside-1")), write],
    [write, writeOf(recordOf("shown/beside-2"))],
  ]) {
    const reply = await store.apply(batch);
    expect(reply.results.map(({ kind }) => kind).sort()).toEqual(
      batch.length === 1 ? ["conflict"] : ["applied", "conflict"],
    );
    expect(isTime(reply.storeTimeMs)).toBe(true);
  }
  expect(isTime((await store.read([record.key])).storeTimeMs)).toBe(true);
  const { tenant } = record.key;
  expect(isTime((await store.list({ tenant, prefix: "", limit: 10 })).storeTimeMs)).toBe(true);
}

import { expect } from "vitest";
import type { LeaseRecord } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import {
  type AppliedOutcome,
  type CommandOutcome,
  type RefusedOutcome,
  StoreExecutor,
  type StoreExecutorOptions,
  type UnsettledOutcome,
} from "../../src/executor/index.ts";
import { type LeaseStore, MemoryStore, type StoredRecord } from "../../src/store/index.ts";
import { FaultyStore } from "./faulty-store.ts";

export const KEY = { tenant: "default", name: "job" };

/** Fences 1, 2, 3: what they are made of is tested in core, on every engine by the kit, and in simulation. */
const COUNTED = { generations: "count" } as const;

export function world({ policy, ...others }: Partial<StoreExecutorOptions> = {}): {
  env: ManualEnv;
  memory: MemoryStore;
  store: FaultyStore;
  executor: StoreExecutor;
  another(): StoreExecutor;
} {
  const env = new ManualEnv();
  const options = { ...others, policy: { ...COUNTED, ...policy } };
  const memory = new MemoryStore({ env });
  const store = new FaultyStore(memory);
  const executor = new StoreExecutor({ store, env, ...options });
  return {
    env,
    memory,
    store,
    executor,
    another: () => new StoreExecutor({ store: memory, env, ...options }),
  };
}

export function applied(outcome: CommandOutcome): AppliedOutcome {
  expect(outcome).toMatchObject({ kind: "applied" });
  return outcome as AppliedOutcome;
}

export function refused(outcome: CommandOutcome): RefusedOutcome {
  expect(outcome).toMatchObject({ kind: "refused" });
  return outcome as RefusedOutcome;
}

export function unsettled(outcome: CommandOutcome): UnsettledOutcome {
  expect(outcome).toMatchObject({ kind: "unsettled" });
  return outcome as UnsettledOutcome;
}

/** Lets manual time run in small steps until the promise settles. */
export async function runUntilSettled<Value>(
  env: ManualEnv,
  promise: Promise<Value>,
  limitMs = 60_000,
): Promise<Value> {
  let done = false;
  const watched = promise.finally(() => {
    done = true;
  });
  watched.catch(() => undefined);
  for (let elapsed = 0; !done && elapsed < limitMs; elapsed += 10) await env.advance(10);
  return await watched;
}

export type Found = Extract<StoredRecord, { kind: "found" }>;

type ReadableStore = Pick<LeaseStore, "read" | "apply">;

/** What is in the store under the key. */
export async function storedIn(store: ReadableStore): Promise<Found> {
  const [found] = (await store.read([KEY])).records;
  if (found?.kind !== "found") throw new Error("there is no record");
  return found;
}

/** The store goes back to what it showed before: every write since then is lost. */
export async function goBackTo(record: LeaseRecord, store: ReadableStore): Promise<void> {
  const { version } = await storedIn(store);
  const { results } = await store.apply([{ key: KEY, expected: version, next: record }]);
  expect(results).toMatchObject([{ kind: "applied" }]);
}

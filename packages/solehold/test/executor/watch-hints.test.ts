/** What came with a watch event: a hint at what to try, never more. */
import { expect, it } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { MemoryStore, type StoredRecord } from "../../src/store/index.ts";

const key = { tenant: "default", name: "job" };

type Found = Extract<StoredRecord, { kind: "found" }>;

class CountingStore extends MemoryStore {
  readonly calls: string[] = [];

  override read(...args: Parameters<MemoryStore["read"]>): ReturnType<MemoryStore["read"]> {
    this.calls.push("read");
    return super.read(...args);
  }

  override apply(...args: Parameters<MemoryStore["apply"]>): ReturnType<MemoryStore["apply"]> {
    this.calls.push("apply");
    return super.apply(...args);
  }
}

/** A holder, and a process that has seen that it holds. */
async function world() {
  const env = new ManualEnv();
  const store = new CountingStore({ env });
  const policy = { generations: "count" } as const;
  const [holder, waiter] = [1, 2].map(() => new StoreExecutor({ store, env, policy })) as [
    StoreExecutor,
    StoreExecutor,
  ];
  const acquire = (executor: StoreExecutor, name: string) =>
    executor.execute({ op: "acquire", key, holder: name, ttlMs: 30_000 });
  const stored = async (): Promise<Found> => {
    const [found] = (await store.read([key])).records;
    if (found?.kind !== "found") throw new Error("there is no record");
    return found;
  };
  const granted = await acquire(holder, "holder");
  if (granted.kind !== "applied") throw new Error(granted.kind);
  const held = await stored();
  await acquire(waiter, "waiter");
  const release = () => holder.execute({ op: "release", key, holder: "holder", token: granted.token });
  return { store, waiter, stored, held, release, tryAgain: () => acquire(waiter, "waiter") };
}

it("an attempt after an event that brought the record writes at once", async () => {
  const { store, waiter, stored, release, tryAgain } = await world();
  await release();
  waiter.onHint(key, await stored());
  store.calls.length = 0;
  expect(await tryAgain()).toMatchObject({ kind: "applied" });
  expect(store.calls).toEqual(["apply"]);
});

it("an attempt after an event without it looks first", async () => {
  const { store, release, tryAgain } = await world();
  await release();
  store.calls.length = 0;
  expect(await tryAgain()).toMatchObject({ kind: "applied" });
  expect(store.calls).toEqual(["read", "apply"]);
});

it("an event that was overtaken does not change the outcome", async () => {
  const { store, waiter, stored, held, release, tryAgain } = await world();
  await release();
  const released = await stored();
  const first = await tryAgain();
  expect(first).toMatchObject({ kind: "applied", decision: { lease: { generation: 2n } } });
  for (const late of [released, held]) {
    waiter.onHint(key, late);
    store.calls.length = 0;
    expect(await tryAgain()).toMatchObject({ kind: "refused", decision: { reason: "LEASE_HELD_BY_SELF" } });
    // What is known to be newer was not given up for it.
    expect(store.calls).toEqual(["read"]);
  }
});

it("an event with a fence that no answer showed does not make the store's answers suspect", async () => {
  const { waiter, stored, release, tryAgain } = await world();
  await release();
  const released = await stored();
  waiter.onHint(key, { ...released, version: "no such", record: { ...released.record, generation: 900n } });
  expect(await tryAgain()).toMatchObject({ kind: "applied", decision: { lease: { generation: 2n } } });
});

/** What a process remembers of keys: it saves looks into the store, and is never mixed up. */
import { describe, expect, it } from "vitest";
import type { LeaseKey } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { applied, KEY, unsettled, world } from "./helpers.ts";

async function acquireAndRelease(executor: StoreExecutor, key: LeaseKey): Promise<void> {
  const { token } = applied(await executor.execute({ op: "acquire", key, holder: "a", ttlMs: 5_000 }));
  applied(await executor.execute({ op: "release", key, holder: "a", token }));
}

function named(name: string, tenant = "default"): LeaseKey {
  return { tenant, name };
}

/** Answers the writes to one key only on request; other calls pass. */
class HoldingStore extends MemoryStore {
  override readonly capabilities = { ...new MemoryStore().capabilities, maxConcurrentCalls: 2 };
  readonly calls: string[] = [];
  #held: string | null = null;
  #arrived: (letGo: () => void) => void = () => undefined;

  /** Resolves when a write to the key was done, with what lets its answer go. */
  hold(name: string): Promise<() => void> {
    this.#held = name;
    return new Promise((resolve) => {
      this.#arrived = resolve;
    });
  }

  override read(...args: Parameters<MemoryStore["read"]>): ReturnType<MemoryStore["read"]> {
    this.calls.push("read");
    return super.read(...args);
  }

  override async apply(...[writes]: Parameters<MemoryStore["apply"]>): ReturnType<MemoryStore["apply"]> {
    this.calls.push("apply");
    const reply = await super.apply(writes);
    if (!writes.some(({ key }) => key.name === this.#held)) return reply;
    this.#held = null;
    await new Promise<void>((resolve) => this.#arrived(resolve));
    return reply;
  }
}

describe("what a process remembers of a key", () => {
  it("saves every look but the first", async () => {
    const { executor, store } = world();
    await acquireAndRelease(executor, KEY);
    const looks = store.calls.read;
    await acquireAndRelease(executor, KEY);
    // A key that it never saw is tried on the strength of what it knows of the others.
    await acquireAndRelease(executor, named("another"));
    await acquireAndRelease(executor, named("another"));
    expect(store.calls).toEqual({ read: looks, apply: 8, writes: 8 });
  });

  it("ends with a record that this process deletes", async () => {
    const { executor, store } = world({ policy: { release: "delete" } });
    await acquireAndRelease(executor, KEY);
    const { read } = store.calls;
    await acquireAndRelease(executor, KEY);
    expect(store.calls).toEqual({ read, apply: 4, writes: 4 });
  });

  it.each([
    ["of another tenant", named("job"), named("job", "other")],
    ["of another tenant that is not the default either", named("job", "one"), named("job", "other")],
    ["whose name looks like a tenant and a name", named("job", "other"), named("other/job")],
  ])("is not taken for that of a key %s", async (_, key, other) => {
    const { executor, store } = world();
    for (let time = 0; time < 3; time += 1) await acquireAndRelease(executor, key);
    const { apply } = store.calls;
    const { decision } = applied(
      await executor.execute({ op: "acquire", key: other, holder: "a", ttlMs: 5_000 }),
    );
    expect(decision.lease.generation).toBe(1n);
    // One write, which met what it expected.
    expect(store.calls.apply).toBe(apply + 1);
  });

  it("is as good after a write that failed as before it", async () => {
    const { another, executor, store } = world();
    await acquireAndRelease(another(), KEY);
    await executor.read(KEY);
    store.writeFaults = ["failed-before"];
    unsettled(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const { read } = store.calls;
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(store.calls).toEqual({ read, apply: 2, writes: 2 });
  });

  it("is kept when the answer comes after so many others that the key had been forgotten", async () => {
    const env = new ManualEnv();
    const store = new HoldingStore({ env });
    const executor = new StoreExecutor({ store, env, cacheSize: 4 });
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const held = store.hold(KEY.name);
    const releasing = executor.execute({ op: "release", key: KEY, holder: "a", token });
    const letGo = await held;
    for (const name of ["b", "c", "d", "e", "f"]) await acquireAndRelease(executor, named(name));
    letGo();
    applied(await releasing);
    store.calls.length = 0;
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(store.calls).toEqual(["apply"]);
  });
});

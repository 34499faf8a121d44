/**
 * Verrou's own suite for stores, and that its locks and leases exclude each other.
 *
 * Some cases of the suite look at a lock at the very millisecond of its end. They run in memory only: over a network a record
 * may last longer than its ttl by as much as the store's time is uncertain, which is never less safe, and never exact.
 */
import { randomUUID } from "node:crypto";
import { connect, Leases } from "solehold";
import { type LockStore, SoleholdStore, soleholdStore } from "solehold/adapters/verrou";
import { afterAll, beforeAll, assert as chai, describe, expect, it } from "vitest";
import { engine } from "../engines/index.ts";
import { importPeer } from "./peers.ts";

/** The parts of japa's `test` and `assert` that the suite uses. */
interface Assert {
  rejects(body: () => Promise<unknown>, message: string): Promise<void>;
}
type Body = (context: { readonly assert: typeof chai & Assert }) => Promise<void>;
interface Suite {
  registerStoreTestSuite(options: {
    test(title: string, body: Body): { throws(message: string, error: ErrorClass): void };
    createStore(): LockStore;
  }): void;
}
type ErrorClass = new () => Error;
interface Lock {
  acquireImmediately(): Promise<boolean>;
  release(): Promise<void>;
  getOwner(): string;
}
interface Verrou {
  readonly E_LOCK_NOT_OWNED: ErrorClass;
  readonly Verrou: new (config: object) => { createLock(name: string, ttl?: number | null): Lock };
}

const { E_LOCK_NOT_OWNED, Verrou } = (await importPeer("@verrou/core")) as Verrou;
const { registerStoreTestSuite } = (await importPeer("@verrou/core/test_suite")) as Suite;

let leases: Leases;
beforeAll(async () => {
  leases = await connect(engine("redis"));
});
afterAll(() => leases.close());

const assert = Object.assign(chai, {
  rejects: async (body: () => Promise<unknown>, message: string) =>
    expect(body()).rejects.toThrow(message) as Promise<void>,
});

const TIMED = /ttl|expire/;

describe.each([
  ["in memory", (): string => "memory:", (): boolean => true],
  ["on Redis", (): string => engine("redis"), (title: string): boolean => !TIMED.test(title)],
])("verrou's suite for stores, %s", (_, url, isWanted) => {
  let store: Leases;
  beforeAll(async () => {
    store = await connect(url());
  });
  afterAll(() => store.close());

  registerStoreTestSuite({
    // Every store has a tenant of its own: the suite uses one name for all locks.
    createStore: () =>
      new SoleholdStore({
        leases: new Leases({ executor: store.executor, tenant: randomUUID() }),
        E_LOCK_NOT_OWNED,
      }),
    test(title, body) {
      let thrown: { message: string; error: ErrorClass } | null = null;
      const run = async (): Promise<void> => {
        if (thrown === null) return await body({ assert });
        const error = await body({ assert }).then(
          () => null,
          (reason) => reason,
        );
        expect(error).toBeInstanceOf(thrown.error);
        expect(error.message).toBe(thrown.message);
      };
      if (isWanted(title)) it.concurrent(title, run);
      return {
        throws: (message, error) => {
          thrown = { message, error };
        },
      };
    },
  });
});

describe("a lock of verrou", () => {
  const created = (ttl?: number | null): { name: string; lock: Lock } => {
    const stores = { solehold: { driver: soleholdStore({ leases, E_LOCK_NOT_OWNED }) } };
    const name = `verrou/${randomUUID()}`;
    return { name, lock: new Verrou({ default: "solehold", stores }).createLock(name, ttl) };
  };

  it("is a lease: whoever asks for that finds it held, and the other way round", async () => {
    const { name, lock } = created();
    expect(await lock.acquireImmediately()).toBe(true);
    expect((await leases.tryAcquire(name)).ok).toBe(false);
    await lock.release();
    const lease = await leases.acquire(name, { wait: 0 });
    expect(await lock.acquireImmediately()).toBe(false);
    await lease.release();
  });

  it("cannot be released or extended by the owner of an earlier lock of that name", async () => {
    const { name, lock } = created();
    await lock.acquireImmediately();
    await lock.release();
    const lease = await leases.acquire(name, { wait: 0, note: "not of verrou" });
    await expect(lock.release()).rejects.toBeInstanceOf(E_LOCK_NOT_OWNED);
    lease.assertHeld();
    expect((await leases.inspect(name))!.fence).toBe(lease.fence);
    await lease.release();
  });

  it("shows neither its owner nor what proves it", async () => {
    const { name, lock } = created();
    await lock.acquireImmediately();
    const view = await leases.inspect(name);
    expect(view!.holder).toBe(leases.holder);
    expect(JSON.stringify(view)).not.toContain(lock.getOwner());
    await lock.release();
  });

  it("without a ttl is renewed while its process lives, and ends with it", async () => {
    const short = await connect(engine("redis"), { policy: { defaultTtlMs: 1_000 }, holder: "short" });
    const name = `verrou/${randomUUID()}`;
    const store = new SoleholdStore({ leases: short, E_LOCK_NOT_OWNED });
    await store.save(name, "owner", null);
    await expect(leases.acquire(name, { wait: 2_200 })).rejects.toThrow("held by short");
    await short.close();
    await (await leases.acquire(name, { wait: "2m" })).release();
  });

  it("with a ttl that no policy allows is refused by name, not polled for ever", async () => {
    const store = new SoleholdStore({ leases, E_LOCK_NOT_OWNED });
    await expect(store.save("too long", "owner", 400 * 86_400_000)).rejects.toThrow(/ttlMs/);
  });
});

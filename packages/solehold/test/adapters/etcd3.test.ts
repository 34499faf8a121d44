/** One program, run with etcd3's Lock and with the adapter, on etcd; then what the adapter does otherwise, on purpose. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, type Leases } from "solehold";
import { EtcdLockFailedError, EtcdLocks } from "solehold/adapters/etcd3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engine } from "../engines/index.ts";
import { requirePeer } from "./peers.ts";

const etcd3 = requirePeer("etcd3") as {
  Etcd3: new (options: { hosts: string }) => Pick<EtcdLocks, "lock"> & { close(): void };
  EtcdLockFailedError: typeof EtcdLockFailedError;
};
const open = (): Promise<Leases> => connect(engine("etcd").replace("http:", "etcd:"));
const key = (): string => `etcd3/${randomUUID()}`;

const PEER = {
  Failed: etcd3.EtcdLockFailedError,
  async open() {
    const client = new etcd3.Etcd3({ hosts: engine("etcd") });
    return { client, close: async () => client.close() };
  },
};
const OURS = {
  Failed: EtcdLockFailedError,
  async open() {
    const leases = await open();
    return { client: new EtcdLocks(leases), close: () => leases.close() };
  },
};

describe.each([
  ["etcd3's Lock", PEER],
  ["solehold/adapters/etcd3", OURS],
])("a program written for etcd3, with %s", (_, { Failed, open }) => {
  let client: Pick<EtcdLocks, "lock">;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ client, close } = await open());
  });
  afterAll(() => close());

  it("runs work under a lock and returns its result", async () => {
    const name = key();
    const result = await client
      .lock(name)
      .ttl(10)
      .do(async () => {
        await expect(client.lock(name).acquire()).rejects.toBeInstanceOf(Failed);
        return "done";
      });
    expect(result).toBe("done");
    await (await client.lock(name).acquire()).release();
  });

  it("fails at once when somebody has the lock, and names the key", async () => {
    const name = key();
    const held = await client.lock(name).acquire();
    await expect(client.lock(name).do(() => "never")).rejects.toThrow(`Failed to acquire a lock on ${name}`);
    await held.release();
  });

  it("releases when the work throws, and passes the error on", async () => {
    const name = key();
    const failing = client.lock(name).do(() => {
      throw new Error("no such account");
    });
    await expect(failing).rejects.toThrow("no such account");
    await (await client.lock(name).acquire()).release();
  });

  it("renews a lock that is held for longer than its ttl", async () => {
    const name = key();
    const held = await client.lock(name).ttl(1).acquire();
    const untilMs = performance.now() + 2_500;
    while (performance.now() < untilMs)
      await expect(client.lock(name).acquire()).rejects.toBeInstanceOf(Failed);
    await held.release();
  });

  it("refuses a ttl after the acquire, and a release before it", async () => {
    const lock = client.lock(key());
    await expect(async () => lock.release()).rejects.toThrow("not acquired");
    await lock.acquire();
    expect(() => lock.ttl(5)).toThrow("Cannot set a lock TTL");
    await lock.release();
  });
});

describe("what only the adapter does", () => {
  let leases: Leases;
  beforeAll(async () => {
    leases = await open();
  });
  afterAll(() => leases.close());

  it("gives the work a fence that grows with every grant", async () => {
    const lock = new EtcdLocks(leases).lock(key());
    const first = await lock.do(({ fence }) => fence);
    expect(await lock.do(({ fence }) => fence)).toBeGreaterThan(first);
  });

  it("aborts the work's signal when the lock is over", async () => {
    const name = key();
    const reason = await new EtcdLocks(leases).lock(name).do(async ({ signal }) => {
      const aborted = once(signal, "abort");
      await leases.revoke(name);
      await aborted;
      return signal.reason;
    });
    expect(reason).toMatchObject({ name: "LeaseLostError", reason: "revoked" });
  });

  it("names what is wrong with a ttl", () => {
    expect(() => new EtcdLocks(leases).lock("a").ttl(0)).toThrow(
      "ttl must be a number of seconds above 0, got 0",
    );
  });
});

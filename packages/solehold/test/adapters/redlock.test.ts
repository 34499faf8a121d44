/** One program, run with redlock itself and with the adapter; then what the adapter does otherwise, on purpose. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "solehold";
import * as adapter from "solehold/adapters/redlock";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engine } from "../engines/index.ts";
import { peerFile, requirePeer } from "./peers.ts";

interface RedisClient {
  duplicate(...overrides: never[]): unknown;
  quit(): Promise<unknown>;
}
const { Redis } = requirePeer("ioredis") as {
  Redis: new (url: string, options?: object) => RedisClient;
};
const redlock = requirePeer("redlock") as typeof adapter;

const AT_ONCE = { retryCount: 0 };
/** Until it has it. */
const PATIENT = { retryCount: -1, retryDelay: 20, retryJitter: 10 };
const resource = (): string => `redlock/${randomUUID()}`;

describe.each([
  ["redlock 5", redlock],
  ["solehold/adapters/redlock", adapter],
])(
  "a program written for redlock, with %s",
  (_, { default: Redlock, ExecutionError, ResourceLockedError }) => {
    let client: RedisClient;
    let locks: adapter.Redlock;
    beforeAll(() => {
      client = new Redis(engine("redis"));
      locks = new Redlock([client], { retryCount: 0, automaticExtensionThreshold: 300 });
    });
    afterAll(() => locks.quit());

    const isFree = async (name: string): Promise<boolean> => {
      const lock = await locks.acquire([name], 5_000, AT_ONCE).catch(() => null);
      await lock?.release();
      return lock !== null;
    };

    it("acquires, extends and releases", async () => {
      const name = resource();
      let lock = await locks.acquire([name], 5_000);
      expect(lock.resources).toEqual([name]);
      expect(lock.expiration).toBeGreaterThan(Date.now() + 4_000);
      const first = lock;
      lock = await lock.extend(9_000);
      expect(lock.expiration).toBeGreaterThan(Date.now() + 8_000);
      expect(lock.value).toBe(first.value);
      expect(first.expiration).toBe(0);
      expect(await isFree(name)).toBe(false);
      await lock.release();
      expect(lock.expiration).toBe(0);
      expect(await isFree(name)).toBe(true);
    });

    it("refuses what is locked, with the votes, and with an event", async () => {
      const name = resource();
      const held = await locks.acquire([name], 5_000);
      const event = once(locks, "error", { signal: AbortSignal.timeout(5_000) }).catch((error) => [error]);
      const seen: unknown[] = [];
      locks.on("error", (error) => seen.push(error));
      const error = await locks.acquire([name], 5_000, AT_ONCE).catch((reason) => reason);
      expect(error).toBeInstanceOf(ExecutionError);
      expect(error.name).toBe("ExecutionError");
      const [stats] = await Promise.all<adapter.ExecutionStats>(error.attempts);
      expect(stats).toMatchObject({ membershipSize: 1, quorumSize: 1 });
      expect(stats!.votesFor.size).toBe(0);
      expect(stats!.votesAgainst.get(client)).toBeInstanceOf(ResourceLockedError);
      expect(seen[0]).toBeInstanceOf(ResourceLockedError);
      await event;
      locks.removeAllListeners("error").on("error", () => undefined);
      await held.release();
    });

    it("waits for as long as its retries last", async () => {
      const name = resource();
      const held = await locks.acquire([name], 20_000);
      const waiting = locks.acquire([name], 5_000, PATIENT);
      await held.release();
      await (await waiting).release();
    });

    it("ends a lock that nobody extends", async () => {
      const name = resource();
      await locks.acquire([name], 200);
      await (await locks.acquire([name], 5_000, PATIENT)).release();
    });

    it("locks all of the resources or none", async () => {
      const [a, b] = [resource(), resource()];
      const held = await locks.acquire([b], 5_000);
      await expect(locks.acquire([a, b], 5_000)).rejects.toThrow(ExecutionError);
      expect(await isFree(a)).toBe(true);
      await held.release();
      const both = await locks.acquire([a, b], 5_000);
      expect([await isFree(a), await isFree(b)]).toEqual([false, false]);
      await both.release();
      expect([await isFree(a), await isFree(b)]).toEqual([true, true]);
    });

    it("leaves a successor its lock: the first can neither release nor extend it", async () => {
      const name = resource();
      const first = await locks.acquire([name], 200);
      const second = await locks.acquire([name], 20_000, PATIENT);
      await expect(first.extend(5_000)).rejects.toThrow(ExecutionError);
      await expect(first.release()).rejects.toThrow(ExecutionError);
      expect(await isFree(name)).toBe(false);
      await second.release();
    });

    it("extends by itself while a routine runs, and returns what it returns", async () => {
      const [a, b] = [resource(), resource()];
      const result = await locks.using([a, b], 600, async (signal) => {
        // Longer than twice the duration.
        const other = locks.acquire([b], 1_000, { retryCount: 13, retryDelay: 100, retryJitter: 0 });
        await expect(other).rejects.toThrow(ExecutionError);
        if (signal.aborted) throw signal.error;
        return "done";
      });
      expect(result).toBe("done");
      expect([await isFree(a), await isFree(b)]).toEqual([true, true]);
    });

    it("passes a routine's error on, and releases", async () => {
      const name = resource();
      const failing = locks.using([name], 5_000, AT_ONCE, async () => {
        throw new Error("insufficient balance");
      });
      await expect(failing).rejects.toThrow("insufficient balance");
      expect(await isFree(name)).toBe(true);
    });

    it("refuses what makes no sense", async () => {
      await expect(locks.acquire([resource()], 1.5)).rejects.toThrow("Duration must be an integer value");
      expect(() => new Redlock([])).toThrow("at least one");
    });
  },
);

describe("what only the adapter does", () => {
  it("gives a fence that grows with every grant, and stays over an extension", async () => {
    const leases = await connect(engine("redis"));
    const locks = new adapter.Redlock([leases]);
    const name = resource();
    const first = await locks.acquire([name], 5_000);
    const extended = await first.extend(5_000);
    expect(extended.fence).toBe(first.fence);
    await extended.release();
    const fence = await locks.using([name], 5_000, async (_, lock) => lock.fence);
    expect(fence).toBeGreaterThan(first.fence);
    await leases.close();
  });

  it("aborts the signal of a routine whose lock an operator ended, and rejects with ExecutionError", async () => {
    const leases = await connect(engine("redis"));
    const locks = new adapter.Redlock([leases]);
    const name = resource();
    const using = locks.using([name], 5_000, async (signal) => {
      const aborted = once(signal, "abort");
      await leases.revoke(name);
      await aborted;
      throw signal.error;
    });
    const error = await using.catch((reason) => reason);
    expect(error).toBeInstanceOf(adapter.ExecutionError);
    expect(error.cause).toMatchObject({ name: "LeaseLostError", reason: "revoked" });
    await leases.close();
  });

  it("keeps the old lock when an extension fails", async () => {
    const leases = await connect("memory:");
    const locks = new adapter.Redlock([leases]);
    const lock = await locks.acquire(["a", "b"], 60_000);
    await leases.revoke("b");
    await expect(lock.extend(60_000)).rejects.toThrow(adapter.ExecutionError);
    expect(lock.leases[0]!.isHeld()).toBe(true);
    expect((await leases.inspect("a"))!.live).toBe(true);
    await leases.close();
  });

  it("says once which settings it does not use, and that there is no quorum", async () => {
    const said: string[] = [];
    const listener = (warning: Error): void => void said.push(warning.message);
    process.on("warning", listener);
    const clients = [engine("redis"), engine("redis"), engine("redis")].map((url) => new Redis(url));
    // The settings of redlock's README.
    const settings = { driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 200 };
    const all = { ...settings, automaticExtensionThreshold: 500 };
    const locks = new adapter.Redlock(clients, all);
    new adapter.Redlock(clients, all);
    await (await locks.acquire([resource()], 1_000)).release();
    await locks.quit();
    process.off("warning", listener);
    expect(said).toEqual([
      expect.stringContaining("3 clients were given. The first is the store of all leases"),
      expect.stringContaining("driftFactor, retryJitter, automaticExtensionThreshold not used"),
    ]);
  });

  it("answers with ExecutionError when Redis cannot be reached, and works once it can be", async () => {
    let url = "redis://127.0.0.1:1";
    // As a client of ioredis, whose settings the store takes by duplicating it.
    const client = {
      ...{ options: {}, call: null, disconnect: null },
      duplicate: (options: object) => new Redis(url, options),
    };
    const locks = new adapter.Redlock([client]);
    const error = await locks.acquire([resource()], 1_000, AT_ONCE).catch((reason) => reason);
    expect(error).toBeInstanceOf(adapter.ExecutionError);
    expect(error.cause).toMatchObject({ name: "StoreError" });
    url = engine("redis");
    await (await locks.acquire([resource()], 1_000, AT_ONCE)).release();
    await locks.quit();
  });
});

/** The programs of redlock's README, one after the other, as they stand there. Its imports and names are parameters. */
const README = readFileSync(peerFile("redlock/README.md"), "utf8");
const EXAMPLES = [...README.matchAll(/```ts\n([\s\S]+?)```/g)]
  .map(([, code = ""]) => code.replaceAll(/^import .*\n/gm, ""))
  .filter((code) => !code.includes("require("));
const AsyncFunction = (async () => undefined).constructor as new (
  ...text: string[]
) => (...given: unknown[]) => Promise<unknown>;

it.each([
  ["redlock 5", redlock],
  ["solehold/adapters/redlock", adapter],
])("the examples of redlock's README run with %s", async (_, { default: Redlock, ...errors }) => {
  const [senderId, recipientId, other] = [resource(), resource(), resource()];
  /** Each of its three servers is a database of its own here. */
  class Client extends Redis {
    constructor({ host }: { readonly host: string }) {
      super(engine("redis"), { db: "abc".indexOf(host.charAt(0)) });
    }
  }
  const opened: adapter.Redlock[] = [];
  class Observed extends Redlock {
    constructor(clients: Iterable<adapter.Client>, settings?: Partial<adapter.Settings>) {
      super(clients, settings);
      opened.push(this);
    }
  }
  const steps: (readonly boolean[])[] = [];
  const somebodyElse = async (): Promise<void> => {
    const attempts = [senderId, recipientId, other].map(async (name) => {
      const lock = await opened[0]!.acquire([name], 5_000, AT_ONCE).catch(() => null);
      await lock?.release();
      return lock === null;
    });
    steps.push(await Promise.all(attempts));
  };
  const given = {
    ...{ Client, Redlock: Observed, ResourceLockedError: errors.ResourceLockedError },
    ...{ senderId, recipientId, something: somebodyElse, somethingElse: somebodyElse },
  };
  const code = EXAMPLES.join("\n").replace('["a"]', JSON.stringify([other]));
  expect(EXAMPLES).toHaveLength(4);
  await new AsyncFunction(...Object.keys(given), code)(...Object.values(given));
  const [transfer, direct] = [
    [true, true, false],
    [false, false, true],
  ];
  expect(steps).toEqual([transfer, transfer, direct, direct]);
  await somebodyElse();
  expect(steps.at(-1)).toEqual([false, false, false]);
  await opened[0]!.quit();
});

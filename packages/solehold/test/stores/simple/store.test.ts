/** What SimpleStore makes of backends that fail, hang, contradict themselves or lack something. */
import { describe, expect, it } from "vitest";
import { ManualEnv, settle } from "../../../src/env/index.ts";
import {
  type LeaseStore,
  type SimpleBackend,
  SimpleStore,
  type SimpleStoreOptions,
  StoreError,
  type StoreEvent,
} from "../../../src/store/index.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { MapBackend, PushingBackend } from "./map-backend.ts";

function storeOn(backend: SimpleBackend, options: Partial<SimpleStoreOptions> = {}): LeaseStore {
  return new SimpleStore({ name: "map", backend, durable: false, clock: "reply", ...options });
}

const unsent = (): never => {
  throw new StoreError("unreachable", "map: nobody there", { outcome: "not-applied" });
};
const broken = (): never => {
  throw new Error("the wire\nbroke");
};

describe("a write of a SimpleStore", () => {
  it("is of unknown outcome when the backend fails, before or after it was done", async () => {
    const backend = new MapBackend();
    const store = storeOn(backend);
    for (const when of ["beforeWrite", "afterWrite"] as const) {
      backend[when] = broken;
      const error = await rejection(store.apply([writeOf(recordOf(when))]));
      expect(error).toMatchObject({ name: "StoreError", kind: "internal", outcome: "unknown" });
      expect(error.message).toBe("map: a write failed: the wire broke");
      backend[when] = () => undefined;
    }
  });

  it("was not applied when the backend says so", async () => {
    const backend = new MapBackend();
    backend.beforeWrite = unsent;
    const error = await rejection(storeOn(backend).apply([writeOf(recordOf("unsent"))]));
    expect(error).toMatchObject({
      kind: "unreachable",
      outcome: "not-applied",
      message: "map: nobody there",
    });
  });

  it("fails alone: the other of its batch is answered, and its own end is unknown", async () => {
    const backend = new MapBackend();
    const store = storeOn(backend);
    let writes = 0;
    backend.beforeWrite = () => {
      writes += 1;
      if (writes === 1) broken();
    };
    const { results } = await store.apply([writeOf(recordOf("one")), writeOf(recordOf("two"))]);
    expect(results).toMatchObject([{ kind: "unknown", cause: { name: "StoreError" } }, { kind: "applied" }]);
  });

  it("rejects with the worst outcome when all of its batch fail", async () => {
    const backend = new MapBackend();
    let writes = 0;
    backend.beforeWrite = () => {
      writes += 1;
      if (writes === 1) unsent();
      broken();
    };
    const both = storeOn(backend).apply([writeOf(recordOf("one")), writeOf(recordOf("two"))]);
    expect(await rejection(both)).toMatchObject({ outcome: "unknown" });
  });

  it("ends after its time, unknown, and tells the backend so; a late answer changes nothing", async () => {
    const env = new ManualEnv();
    const backend = new MapBackend();
    const store = storeOn(backend, { env, timeoutMs: 100 });
    let signal: AbortSignal | undefined;
    let proceed: () => void = () => undefined;
    backend.beforeWrite = (given) => {
      signal = given;
      return new Promise((resolve) => {
        proceed = resolve;
      });
    };
    const record = recordOf("slow");
    const failed = rejection(store.apply([writeOf(record)]));
    await settle();
    expect(signal?.aborted).toBe(false);
    env.advance(101);
    const error = await failed;
    expect(error).toMatchObject({ kind: "timeout", outcome: "unknown" });
    expect(error.message).toBe("map: no answer to a write within 100 ms");
    expect(signal?.aborted).toBe(true);
    proceed();
    await settle();
    expect((await store.read([record.key])).records).toMatchObject([{ kind: "found" }]);
  });

  it("that lost is an error, and certainly not applied, when the winner cannot be read", async () => {
    const backend = new MapBackend();
    const store = storeOn(backend);
    await create(store, recordOf("taken"));
    const lost = new StoreError("unreachable", "map: the connection is dead", { outcome: "unknown" });
    backend.get = () => Promise.reject(lost);
    const error = await rejection(store.apply([writeOf(recordOf("taken"))]));
    expect(error).toMatchObject({ kind: "unreachable", outcome: "not-applied", message: lost.message });
  });

  it("needs no second read when the backend shows the winner with the refusal", async () => {
    const backend = new MapBackend();
    const current = { text: "damage", version: "v2" };
    backend.putIf = async () => ({ kind: "conflict", current, timeMs: 1 });
    backend.get = async () => broken();
    const result = await applyOne(storeOn(backend), writeOf(recordOf("shown"), "v1"));
    expect(result).toMatchObject({ kind: "conflict", current: { kind: "corrupt", version: "v2" } });
  });

  it("is never taken for a conflict with the very version that it named: such a backend reads late", async () => {
    const backend = new MapBackend();
    backend.putIf = async () => ({ kind: "conflict", current: { text: "", version: "v1" }, timeMs: 1 });
    const error = await rejection(storeOn(backend).apply([writeOf(recordOf("late"), "v1")]));
    expect(error).toMatchObject({ kind: "internal", outcome: "unknown" });
    expect(error.message).toContain("although its version is the present one");
  });

  it("must come back with a version", async () => {
    const backend = new MapBackend();
    backend.putIf = async () => ({ kind: "done", timeMs: 1 });
    const error = await rejection(storeOn(backend).apply([writeOf(recordOf("nameless"))]));
    expect(error).toMatchObject({ kind: "internal", outcome: "unknown" });
  });
});

describe("the time of a SimpleStore", () => {
  it("is the latest that the replies of a call carry, in whole milliseconds", async () => {
    const backend = new MapBackend();
    const times = [5_000.9, 4_000];
    backend.reply = () => ({ timeMs: times.shift() ?? 0 });
    const { storeTimeMs } = await storeOn(backend).read([recordOf("a").key, recordOf("b").key]);
    expect(storeTimeMs).toBe(5_000);
  });

  it("is missed where the clock is said to come with replies", async () => {
    const backend = new MapBackend();
    backend.reply = () => ({});
    const error = await rejection(storeOn(backend).read([recordOf("a").key]));
    expect(error).toMatchObject({
      kind: "internal",
      message: 'map: a reply has no time, but its clock is "reply"',
    });
  });

  it("comes with the last change of the server", async () => {
    const backend = new MapBackend();
    const changes = [7, null, 9];
    backend.reply = () => ({ timeMs: 10, serverChangedAtMs: changes.shift() ?? null });
    const store = storeOn(backend);
    expect(await store.read([recordOf("a").key])).toMatchObject({ serverChangedAtMs: 7 });
    expect(await store.read([recordOf("a").key])).not.toHaveProperty("serverChangedAtMs");
    expect(await applyOne(store, writeOf(recordOf("a")))).toMatchObject({ kind: "applied" });
  });
});

describe("what a SimpleStore says it can do", () => {
  it("follows from what its backend has", () => {
    const { get, putIf } = new MapBackend();
    const poor = storeOn({ get, putIf }, { clock: "none" });
    expect([poor.list, poor.watch, poor.now]).toEqual([undefined, undefined, undefined]);
    expect(poor.capabilities).toMatchObject({ watch: false, conditionalDelete: false, clock: "none" });
    const polling = storeOn(new MapBackend(), { pollMs: 50 });
    expect(polling.capabilities).toMatchObject({ watch: true, conditionalDelete: true });
    expect(storeOn({ get, putIf }, { pollMs: 50 }).capabilities.watch).toBe(false);
    const exact = storeOn(new PushingBackend(), { clock: "exact" });
    expect(exact.capabilities).toMatchObject({ watch: true, clock: "exact", maxConcurrentCalls: 8 });
  });

  it("does not delete without a clock, so that no fence is handed out twice", async () => {
    const store = storeOn(new MapBackend(), { clock: "none" });
    const record = recordOf("kept");
    const version = await create(store, record);
    const error = await rejection(store.apply([{ key: record.key, expected: version, next: null }]));
    expect(error).toMatchObject({ kind: "config", outcome: "not-applied" });
    expect((await store.read([record.key])).records).toMatchObject([{ kind: "found" }]);
  });

  it.each([
    [{ timeoutMs: 0 }, "map: timeoutMs must be a whole number from 1 to 2147483647, got '0'"],
    [{ concurrency: 1.5 }, "map: concurrency must be a whole number from 1 to 2147483647, got '1.5'"],
    [{ pollMs: -1 }, "map: pollMs must be a whole number from 1 to 2147483647, got '-1'"],
    [{ clockSkewMs: Number.NaN }, "map: clockSkewMs must be a whole number from 0 to 2147483647, got 'NaN'"],
    [{ clock: "exact" as const }, 'map: clock "exact" does not fit a backend without now()'],
  ])("does not take %j", (options, message) => {
    expect(() => storeOn(new MapBackend(), options)).toThrow(
      new StoreError("config", message, { outcome: "not-applied" }),
    );
  });
});

describe("a polling watch", () => {
  it("announces what differs from the last look, and outlives looks that fail", async () => {
    const env = new ManualEnv();
    const backend = new MapBackend();
    const store = storeOn(backend, { env, pollMs: 100 });
    const events: StoreEvent[] = [];
    const record = recordOf("watched");
    const old = await create(store, recordOf("old"));
    const watch = await store.watch!({ tenant: "default", prefix: "" }, (event) => events.push(event));
    const round = async (): Promise<readonly StoreEvent[]> => {
      env.advance(120);
      await settle();
      return events.splice(0);
    };
    expect(await round()).toEqual([]);
    const version = await create(store, record);
    const found = { kind: "found", version, record };
    expect(await round()).toMatchObject([{ kind: "changed", key: record.key, stored: found }]);
    const list = backend.list.bind(backend);
    backend.list = async () => broken();
    await store.apply([{ key: recordOf("old").key, expected: old, next: null }]);
    expect(await round()).toEqual([]);
    backend.list = list;
    expect(await round()).toEqual([
      { kind: "changed", key: recordOf("old").key, stored: { kind: "absent" } },
    ]);
    await watch.close();
    await create(store, recordOf("later"));
    expect(await round()).toEqual([]);
  });

  it("that begins between two looks takes no change away from those before it", async () => {
    const env = new ManualEnv();
    const store = storeOn(new MapBackend(), { env, pollMs: 100 });
    const events: string[] = [];
    const watch = (name: string) => store.watch!({ tenant: "default", prefix: "" }, () => events.push(name));
    await watch("first");
    await create(store, recordOf("new"));
    await watch("second");
    await env.advance(120);
    await settle();
    expect(events).toContain("first");
    await store.close();
  });

  it("carries no record where listings may be stale", async () => {
    const env = new ManualEnv();
    const backend = new MapBackend();
    const list = backend.list.bind(backend);
    backend.list = async (range) => ({ ...(await list(range)), stale: true });
    const store = storeOn(backend, { env, pollMs: 100 });
    const events: StoreEvent[] = [];
    await store.watch!({ tenant: null, prefix: "" }, (event) => events.push(event));
    await create(store, recordOf("stale"));
    env.advance(120);
    await settle();
    expect(events).toEqual([{ kind: "changed", key: recordOf("stale").key, stored: null }]);
    expect(await store.list!({ tenant: "default", prefix: "", limit: 5 })).toMatchObject({ stale: true });
  });

  it("ends with its store, and with one that was closed while it was opened", async () => {
    const backend = new PushingBackend();
    const store = storeOn(backend, { clock: "exact" });
    await store.watch!({ tenant: null, prefix: "" }, () => undefined);
    expect(backend.server.listeners.size).toBe(1);
    const late = rejection(store.watch!({ tenant: null, prefix: "" }, () => undefined));
    await store.close();
    expect(await late).toMatchObject({ kind: "closed" });
    expect(backend.server.listeners.size).toBe(0);
    await store.close();
    expect(backend.closed).toBe(1);
  });
});

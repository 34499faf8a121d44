/** Lines of clients that wait for a key, on a real server. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import { type Lease, Leases } from "../../../src/client/index.ts";
import { StoreLeaseManager } from "../../../src/manager/index.ts";
import type { StoreEvent, StorePlace } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { applyOne, create, recordOf, until, writeOf } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let admin: Redis;
const opened: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startRedis();
  proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
  admin = new Redis(server.url);
});

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  proxy.heal();
});

afterAll(async () => {
  admin?.disconnect();
  await proxy?.close();
  await server?.stop();
});

async function open(url = server.url): Promise<RedisStore> {
  const store = await openRedisStore({ url });
  opened.push(store);
  return store;
}

async function leases(holder: string, url = server.url): Promise<Leases> {
  const store = await openRedisStore({ url });
  const own = new Leases({ manager: new StoreLeaseManager({ store }), holder });
  opened.push(own);
  return own;
}

interface Waiter {
  readonly name: string;
  readonly place: StorePlace;
  readonly told: StoreEvent[];
}

/** Stands in line, in a process of its own; `order` gets its name when it is told. */
async function stand(job: string, name: string, order: string[], store?: RedisStore): Promise<Waiter> {
  const told: StoreEvent[] = [];
  const place = await (store ?? (await open())).standInLine(recordOf(job).key, (event) => {
    if (event.kind === "changed") order.push(name);
    told.push(event);
  });
  await place.enter();
  return { name, place, told };
}

/** A lease that is held, and how to give it back, and to take it anew. */
async function held(job: string) {
  const store = await open();
  let version = await create(store, recordOf(job));
  const write = async (state: "held" | "released"): Promise<void> => {
    const next = recordOf(job, state === "held" ? {} : { state, endedAtMs: 1 });
    const result = await applyOne(store, writeOf(next, version));
    if (result.kind !== "applied") throw new Error(result.kind);
    version = result.version ?? "";
  };
  return { store, release: () => write("released"), take: () => write("held") };
}

const lineOf = (job: string): Promise<string[]> => admin.zrange(`{solehold:}$line:default/${job}`, "0", "-1");

describe("a line", () => {
  it("tells one after the other, in the order in which they came, and what was written", async () => {
    const lease = await held("order");
    const order: string[] = [];
    const waiters = [];
    for (const name of ["a", "b", "c"]) waiters.push(await stand("order", name, order));
    for (let turn = 1; turn <= 3; turn += 1) {
      await lease.release();
      await until("the next was told", async () => (order.length >= turn ? order : null));
      waiters[turn - 1]?.place.leave("served");
      await lease.take();
    }
    expect(order).toEqual(["a", "b", "c"]);
    const [event] = waiters[0]?.told.filter(({ kind }) => kind === "changed") ?? [];
    expect(event).toMatchObject({ kind: "changed", held: "no" });
    expect(event?.kind === "changed" && event.stored?.()).toMatchObject({ record: { state: "released" } });
  });

  it("gives whoever was told and lost the place that it had", async () => {
    const lease = await held("again");
    const order: string[] = [];
    const first = await stand("again", "first", order);
    await stand("again", "second", order);
    await lease.release();
    await until("the first was told", async () => order[0] ?? null);
    // A newcomer is faster.
    await lease.take();
    await first.place.enter();
    await lease.release();
    await until("somebody was told", async () => order[1] ?? null);
    expect(order).toEqual(["first", "first"]);
  });

  it("is passed on by whoever was told and wants it no more, or left just then", async () => {
    const lease = await held("passed");
    const order: string[] = [];
    const first = await stand("passed", "first", order);
    const second = await stand("passed", "second", order);
    await stand("passed", "third", order);
    second.place.leave("gone");
    await lease.release();
    await until("the first was told", async () => order[0] ?? null);
    first.place.leave("gone");
    await until("another was told", async () => order[1] ?? null);
    expect(order).toEqual(["first", "third"]);
  });

  it("passes over those whose connection is gone", async () => {
    const lease = await held("dead");
    const order: string[] = [];
    const dead = await open();
    await stand("dead", "dead", order, dead);
    await stand("dead", "alive", order);
    await dead.close();
    await until("one listens for its turn", async () => {
      const channels = (await admin.call("PUBSUB", "CHANNELS", "{solehold:}turn:*")) as string[];
      return channels.length === 1 ? true : null;
    });
    expect(await lineOf("dead")).toHaveLength(2);
    await lease.release();
    await until("the next was told", async () => order[0] ?? null);
    expect(order).toEqual(["alive"]);
  });

  it("tells who comes when nobody holds the key, but not while another was just told", async () => {
    const lease = await held("free");
    const order: string[] = [];
    await stand("free", "first", order);
    await lease.release();
    await until("the first was told", async () => order[0] ?? null);
    const second = await stand("free", "second", order);
    expect(order).toEqual(["first"]);
    // The first did nothing, and its time is over.
    await until("the second was told", async () => {
      await second.place.enter();
      return order[1] ?? null;
    });
    expect(order).toEqual(["first", "second"]);
    // Both are out of the line: nobody tells them again.
    await until("both count as told", async () => {
      const line = await admin.zcount("{solehold:}$line:default/free", 0, "+inf");
      return line === 0 ? true : null;
    });
  });

  it("tells nobody twice of what it could not have", async () => {
    const store = await open();
    const version = await create(store, recordOf("revoked"));
    await applyOne(store, writeOf(recordOf("revoked", { state: "revoked", endedAtMs: 1 }), version));
    const order: string[] = [];
    const waiter = await stand("revoked", "waiter", order);
    expect(order).toEqual(["waiter"]);
    // Its attempt was denied: the last holder's time is not over.
    for (let again = 0; again < 3; again += 1) await waiter.place.enter();
    expect(order).toEqual(["waiter"]);
  });

  it("hears, all of it, of a key that is reserved for somebody", async () => {
    const store = await open();
    const version = await create(store, recordOf("reserved"));
    const order: string[] = [];
    for (const name of ["a", "b", "c"]) await stand("reserved", name, order);
    const handoff = { successor: "b", deadlineMs: 1_750_000_060_000 };
    await applyOne(
      store,
      writeOf(recordOf("reserved", { state: "released", endedAtMs: 1, handoff }), version),
    );
    await until("all were told", async () => (order.length === 3 ? true : null));
  });

  it("hears of keys that were freed together", async () => {
    const store = await open();
    const jobs = ["joint/a", "joint/b"];
    const versions = await Promise.all(jobs.map((job) => create(store, recordOf(job))));
    const order: string[] = [];
    for (const job of jobs) await stand(job, job, order);
    await stand("joint/other", "joint/other", []);
    await store.apply(
      jobs.map((job, index) => writeOf(recordOf(job, { state: "released", endedAtMs: 1 }), versions[index]!)),
    );
    await until("both were told", async () => (order.length === 2 ? order : null));
    expect(order.toSorted()).toEqual(jobs);
  });

  it("tells all to look after a lost connection", async () => {
    const lease = await held("gap");
    const order: string[] = [];
    const waiter = await stand("gap", "waiter", order, await open(proxy.through(server.url)));
    const before = waiter.told.length;
    proxy.cut();
    await until("it was told to look", async () => (waiter.told.length > before ? true : null));
    expect(waiter.told.at(-1)).toEqual({ kind: "reset" });
    await waiter.place.enter();
    await lease.release();
    await until("it was told", async () => order[0] ?? null);
  });

  it("is left by all who were served, and ends by itself", async () => {
    const lease = await held("left");
    const order: string[] = [];
    const waiter = await stand("left", "waiter", order);
    expect(Number(await admin.pttl("{solehold:}$line:default/left"))).toBeGreaterThan(0);
    waiter.place.leave("gone");
    await until("the line is empty", async () => ((await lineOf("left")).length === 0 ? true : null));
    await lease.release();
    expect(order).toEqual([]);
  });
});

describe("a crowd of processes", () => {
  it("is served in turn, and every fence is above the one before", async () => {
    const clients = await Promise.all(Array.from({ length: 12 }, (_, index) => leases(`process ${index}`)));
    const served: number[] = Array(clients.length).fill(0);
    const order: number[] = [];
    let fence = 0n;
    await Promise.all(
      clients.map(async (client, index) => {
        for (let turn = 0; turn < 10; turn += 1) {
          const lease = await client.acquire("crowd", { wait: "1m" });
          expect(lease.fence).toBeGreaterThan(fence);
          fence = lease.fence;
          served[index] = (served[index] ?? 0) + 1;
          order.push(index);
          await lease.release();
        }
      }),
    );
    expect(served).toEqual(Array(clients.length).fill(10));
    // Once all stand in line, everybody has had a turn before anybody has the next.
    const rounds = order.slice(24, 96);
    for (let start = 0; start + 12 <= rounds.length; start += 12) {
      expect(new Set(rounds.slice(start, start + 12)).size).toBeGreaterThanOrEqual(10);
    }
  });

  it("lets a successor have what was handed to it, wherever it stands", async () => {
    const [holder, other, successor] = await Promise.all(
      ["holder", "other", "successor"].map((name) => leases(name)),
    );
    const lease = await holder!.acquire("handed", { ttl: 20_000 });
    const stop = new AbortController();
    const inVain = other!.acquire("handed", { wait: "1m", signal: stop.signal }).catch(() => "stopped");
    await until("the other stands in line", async () =>
      (await lineOf("handed")).length === 1 ? true : null,
    );
    const waiting = successor!.acquire("handed", { wait: "1m" });
    await until("both stand in line", async () => ((await lineOf("handed")).length === 2 ? true : null));
    await admin.config("RESETSTAT");
    await lease.handOff("successor", { withinMs: 15_000 });
    const granted = await waiting;
    expect(granted.holder).toBe("successor");
    // The other one was denied, and does not ask over and over.
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await admin.info("commandstats")) ?? [];
    expect(Number(calls)).toBeLessThan(20);
    await granted.release();
    stop.abort();
    const last = await inVain;
    if (last !== "stopped") await (last as Lease).release();
  });

  it("takes turns by news where its user may not use channels for lines", async () => {
    const rules = [
      "on",
      ">lease",
      "resetkeys",
      "~{solehold:}*",
      "resetchannels",
      "&{solehold:}news",
      "+@all",
    ];
    await admin.call("ACL", "SETUSER", "narrow", ...rules);
    const url = server.url.replace("redis://", "redis://narrow:lease@");
    const [holder, waiter] = await Promise.all([leases("holder", url), leases("waiter", url)]);
    const lease = await holder.acquire("narrow");
    const waiting = waiter.acquire("narrow", { wait: "1m" });
    await until("it listens", async () => {
      const [, count] = (await admin.call("PUBSUB", "NUMSUB", "{solehold:}news")) as [string, number];
      return count === 1 ? true : null;
    });
    expect(await lease.release()).toMatchObject({ released: true });
    await using granted = await waiting;
    expect(granted.state).toBe("held");
    expect(await lineOf("narrow")).toEqual([]);
  });

  it("goes on when one who was told is gone without a word", async () => {
    const [holder, second] = [await leases("holder"), await leases("second")];
    const lease = await holder.acquire("silent");
    const order: string[] = [];
    // It stands in line, listens, and does nothing.
    await stand("silent", "mute", order);
    const waiting = second.acquire("silent", { wait: "1m" });
    await until("both stand in line", async () => ((await lineOf("silent")).length === 2 ? true : null));
    await lease.release();
    await using granted = await waiting;
    expect(granted.state).toBe("held");
    expect(order).toEqual(["mute"]);
  });
});

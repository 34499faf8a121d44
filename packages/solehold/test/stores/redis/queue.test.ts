/** The wait queue on a real server: who is woken, in which order, and what a lost turn costs. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import type { QueueTicket, StoreEvent } from "../../../src/store/index.ts";
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

interface Waiter {
  readonly ticket: QueueTicket;
  readonly events: StoreEvent[];
}

/** Enters the queue, as a client of its own; `order` gets its name when it is woken. */
async function enter(job: string, name: string, order: string[], store?: RedisStore): Promise<Waiter> {
  const events: StoreEvent[] = [];
  const ticket = await (store ?? (await open())).joinQueue(recordOf(job).key, (event) => {
    if (event.kind === "changed") order.push(name);
    events.push(event);
  });
  await ticket.enter();
  return { ticket, events };
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

const queueOf = (job: string): Promise<string[]> =>
  admin.zrange(`{solehold:}$queue:default/${job}`, "0", "-1");

describe("the queue", () => {
  it("wakes one after the other, in the order in which they came, with what was written", async () => {
    const lease = await held("order");
    const order: string[] = [];
    const waiters = [];
    for (const name of ["a", "b", "c"]) waiters.push(await enter("order", name, order));
    for (let turn = 1; turn <= 3; turn += 1) {
      await lease.release();
      await until("the next was woken", async () => (order.length >= turn ? order : null));
      waiters[turn - 1]?.ticket.leave("served");
      await lease.take();
    }
    expect(order).toEqual(["a", "b", "c"]);
    const [event] = waiters[0]?.events.filter(({ kind }) => kind === "changed") ?? [];
    expect(event).toMatchObject({
      kind: "changed",
      stored: { kind: "found", record: { state: "released" } },
    });
  });

  it("lets whoever was woken and lost enter at the position that it had", async () => {
    const lease = await held("again");
    const order: string[] = [];
    const first = await enter("again", "first", order);
    await enter("again", "second", order);
    await lease.release();
    await until("the first was woken", async () => order[0] ?? null);
    // A newcomer is faster.
    await lease.take();
    await first.ticket.enter();
    await lease.release();
    await until("somebody was woken", async () => order[1] ?? null);
    expect(order).toEqual(["first", "first"]);
  });

  it("passes the turn on when whoever was woken does not want the key any more", async () => {
    const lease = await held("passed");
    const order: string[] = [];
    const first = await enter("passed", "first", order);
    const second = await enter("passed", "second", order);
    await enter("passed", "third", order);
    second.ticket.leave("gone");
    await lease.release();
    await until("the first was woken", async () => order[0] ?? null);
    first.ticket.leave("gone");
    await until("another was woken", async () => order[1] ?? null);
    expect(order).toEqual(["first", "third"]);
  });

  it("passes over those whose connection is gone", async () => {
    const lease = await held("dead");
    const order: string[] = [];
    const dead = await open();
    await enter("dead", "dead", order, dead);
    await enter("dead", "alive", order);
    await dead.close();
    await until("one listens for its turn", async () => {
      const channels = (await admin.call("PUBSUB", "CHANNELS", "{solehold:}turn:*")) as string[];
      return channels.length === 1 ? true : null;
    });
    expect(await queueOf("dead")).toHaveLength(2);
    await lease.release();
    await until("the next was woken", async () => order[0] ?? null);
    expect(order).toEqual(["alive"]);
  });

  it("wakes who enters while nobody holds the key, but not if another was woken just now", async () => {
    const lease = await held("free");
    const order: string[] = [];
    await enter("free", "first", order);
    await lease.release();
    await until("the first was woken", async () => order[0] ?? null);
    const second = await enter("free", "second", order);
    expect(order).toEqual(["first"]);
    // The first did nothing, and its time is over.
    await until("the second was woken", async () => {
      await second.ticket.enter();
      return order[1] ?? null;
    });
    expect(order).toEqual(["first", "second"]);
    // Both are out of the order: nobody wakes them again.
    await until("both count as woken", async () => {
      const waiting = await admin.zcount("{solehold:}$queue:default/free", 0, "+inf");
      return waiting === 0 ? true : null;
    });
  });

  it("wakes nobody twice for what it could not have", async () => {
    const store = await open();
    const version = await create(store, recordOf("revoked"));
    await applyOne(store, writeOf(recordOf("revoked", { state: "revoked", endedAtMs: 1 }), version));
    const order: string[] = [];
    const waiter = await enter("revoked", "waiter", order);
    expect(order).toEqual(["waiter"]);
    // Its attempt was denied: the last holder's time is not over.
    for (let again = 0; again < 3; again += 1) await waiter.ticket.enter();
    expect(order).toEqual(["waiter"]);
  });

  it("wakes everybody when a key is reserved for a successor, who may be any of them", async () => {
    const store = await open();
    const version = await create(store, recordOf("reserved"));
    const order: string[] = [];
    for (const name of ["a", "b", "c"]) await enter("reserved", name, order);
    const handoff = { successor: "b", deadlineMs: 1_750_000_060_000 };
    await applyOne(
      store,
      writeOf(recordOf("reserved", { state: "released", endedAtMs: 1, handoff }), version),
    );
    await until("all were woken", async () => (order.length === 3 ? true : null));
  });

  it("wakes the first of each queue when several keys are released in one call, and only the first", async () => {
    const store = await open();
    const jobs = ["joint/a", "joint/b"];
    const versions = await Promise.all(jobs.map((job) => create(store, recordOf(job))));
    const order: string[] = [];
    for (const job of jobs) await enter(job, job, order);
    // Second in its queue.
    await enter("joint/a", "second", order);
    await store.apply(
      jobs.map((job, index) => writeOf(recordOf(job, { state: "released", endedAtMs: 1 }), versions[index]!)),
    );
    await until("both were woken", async () => (order.length === 2 ? order : null));
    const settled = await open();
    await (await enter("joint/settled", "settled", order, settled)).ticket.close();
    expect(order.slice(0, 2).toSorted()).toEqual(jobs);
    expect(order).not.toContain("second");
  });

  it("tells all who wait to look after a lost connection", async () => {
    const lease = await held("gap");
    const order: string[] = [];
    const waiter = await enter("gap", "waiter", order, await open(proxy.through(server.url)));
    const before = waiter.events.length;
    proxy.cut();
    await until("it has to look", async () => (waiter.events.length > before ? true : null));
    expect(waiter.events.at(-1)).toEqual({ kind: "reset" });
    await waiter.ticket.enter();
    await lease.release();
    await until("it was woken", async () => order[0] ?? null);
  });

  it("is left by all who do not wait any more, and ends by itself", async () => {
    const lease = await held("left");
    const order: string[] = [];
    const waiter = await enter("left", "waiter", order);
    expect(Number(await admin.pttl("{solehold:}$queue:default/left"))).toBeGreaterThan(0);
    waiter.ticket.leave("gone");
    await until("the queue is empty", async () => ((await queueOf("left")).length === 0 ? true : null));
    await lease.release();
    expect(order).toEqual([]);
  });
});

/** Takes turns for a key as somebody who waits does: woken, it reads and tries; denied, it enters again. */
async function takeTurns(job: string, name: number, turns: number, order: number[]): Promise<void> {
  const store = await open();
  const { key } = recordOf(job);
  let wake: () => void = () => undefined;
  const ticket = await store.joinQueue(key, () => wake());
  for (let turn = 0; turn < turns; ) {
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    await ticket.enter();
    await woken;
    const [stored] = (await store.read([key])).records;
    if (stored?.kind !== "found" || stored.record.state === "held") continue;
    const taken = await applyOne(store, writeOf(recordOf(job, { holder: `${name}` }), stored.version));
    if (taken.kind !== "applied") continue;
    ticket.leave("served");
    order.push(name);
    turn += 1;
    const ended = recordOf(job, { state: "released", endedAtMs: 1 });
    expect((await applyOne(store, writeOf(ended, taken.version))).kind).toBe("applied");
  }
  await ticket.close();
}

it("a crowd of clients is served in turn", async () => {
  const [clients, turns] = [12, 10];
  const lease = await held("crowd");
  const order: number[] = [];
  const all = Array.from({ length: clients }, (_, name) => takeTurns("crowd", name, turns, order));
  await until("all wait", async () => ((await queueOf("crowd")).length === clients ? true : null));
  await lease.release();
  await Promise.all(all);
  for (let name = 0; name < clients; name += 1) {
    expect(order.filter((each) => each === name)).toHaveLength(turns);
  }
  // Everybody has had a turn before anybody has the next, but for one who is overtaken as it enters again.
  const rounds = order.slice(clients * 2, clients * (turns - 2));
  for (let start = 0; start + clients <= rounds.length; start += clients) {
    expect(new Set(rounds.slice(start, start + clients)).size).toBeGreaterThanOrEqual(clients - 2);
  }
});

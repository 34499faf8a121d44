/** Processes that wait for one key: by their tickets each has its turn, however far it is from the store. */
import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import type { LeaseKey } from "../../src/core/index.ts";
import { delay, ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor, TICKET_PREFIX } from "../../src/executor/index.ts";
import { decorateStore, type LeaseStore, MemoryStore } from "../../src/store/index.ts";
import type { WaitQueue } from "../../src/waiting/index.ts";

/** One store, and processes at distances from it, in virtual time. */
class World {
  readonly env = new ManualEnv({ seed: 11 });
  readonly store = new MemoryStore({ env: this.env });
  writes = 0;
  attempts = 0;
  listings = 0;

  /** A store whose every message takes so long, in each direction. */
  #reached(awayMs: number): LeaseStore {
    const { env, store } = this;
    const there = (): Promise<void> => delay(env, awayMs);
    const call = async <Reply>(run: () => Promise<Reply>): Promise<Reply> => {
      await there();
      const reply = await run();
      await there();
      return reply;
    };
    const { now: _now, ...capabilities } = { now: null, ...store.capabilities, clock: "reply" as const };
    const { now, ...remote } = decorateStore(store, {
      capabilities,
      read: (keys) => call(() => store.read(keys)),
      apply: (writes) => {
        this.writes += writes.length;
        this.attempts += writes.filter(({ next }) => next?.state === "held").length;
        return call(() => store.apply(writes));
      },
      list: (query) => {
        this.listings += 1;
        return call(() => store.list(query));
      },
      watch: (scope, listener) =>
        call(() => store.watch(scope, (event) => void env.timer(awayMs, () => listener(event)))),
      close: async () => undefined,
    });
    expect(now).toBeTypeOf("function");
    return remote;
  }

  process(holder: string, awayMs = 0.5): Leases {
    const { env } = this;
    return new Leases({ executor: new StoreExecutor({ store: this.#reached(awayMs), env }), env, holder });
  }

  async tickets(): Promise<number> {
    return (await this.store.list({ tenant: "default", prefix: TICKET_PREFIX, limit: 100 })).records.length;
  }
}

interface Turns {
  readonly waitsMs: number[];
  stop(): void;
}

/** Takes the key for a moment, again and again. */
function takeTurns({ env }: World, leases: Leases, heldMs = 1, pauseMs = 0, name = "job"): Turns {
  const stop = new AbortController();
  const waitsMs: number[] = [];
  const loop = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const startedMs = env.monotonicMs();
      const lease = await leases.acquire(name, { wait: "forever", signal: stop.signal });
      waitsMs.push(env.monotonicMs() - startedMs);
      await delay(env, heldMs);
      await lease.release();
      await delay(env, pauseMs);
    }
  };
  loop().catch(() => undefined);
  return { waitsMs, stop: () => stop.abort() };
}

describe("processes that wait for one key", () => {
  it("at 0, 5 and 20 ms have their turns alike, and none waits long", async () => {
    const world = new World();
    const all = [0.2, 5, 20].map((awayMs) => takeTurns(world, world.process(`${awayMs} away`, awayMs)));
    await world.env.advance(1_500);
    for (const { waitsMs } of all) waitsMs.length = 0;
    await world.env.advance(10_000);
    const turns = all.map(({ waitsMs }) => waitsMs.length);
    const waits = all.flatMap(({ waitsMs }) => waitsMs);
    const meanMs = waits.reduce((sum, each) => sum + each, 0) / waits.length;
    expect(Math.min(...turns)).toBeGreaterThan(Math.max(...turns) / 3);
    expect(Math.max(...waits)).toBeLessThanOrEqual(3 * meanMs);
    for (const { stop } of all) stop();
    await world.env.advance(5_000);
  });

  it("are let in by one that takes the key again and again, and never has to wait", async () => {
    const world = new World();
    const greedy = takeTurns(world, world.process("greedy", 0.2), 0);
    await world.env.advance(300);
    const far = takeTurns(world, world.process("far", 20));
    await world.env.advance(3_000);
    expect(far.waitsMs.length).toBeGreaterThan(5);
    greedy.stop();
    far.stop();
    await world.env.advance(5_000);
  });

  it("are let in by one that takes very many keys so, and it looks for all of them at once", async () => {
    const world = new World();
    const greedy = world.process("greedy", 0.2);
    const names = Array.from({ length: 20 }, (_, index) => `job/${index}`);
    const turns = names.map((name, index) => takeTurns(world, greedy, 1, 5 + (index % 10), name));
    await world.env.advance(2_000);
    world.listings = 0;
    await world.env.advance(3_000);
    // With one for each key there would be 60.
    expect(world.listings).toBeGreaterThan(0);
    expect(world.listings).toBeLessThanOrEqual(30);
    const far = takeTurns(world, world.process("far", 20), 1, 0, "job/7");
    await world.env.advance(3_000);
    expect(far.waitsMs.length).toBeGreaterThan(5);
    for (const { stop } of [...turns, far]) stop();
    await world.env.advance(5_000);
  });

  it("are each served, twenty of them, with hardly an attempt in vain", async () => {
    const world = new World();
    const all = Array.from({ length: 20 }, (_, index) => takeTurns(world, world.process(`p${index}`), 1, 2));
    await world.env.advance(3_000);
    for (const { waitsMs } of all) waitsMs.length = 0;
    world.attempts = 0;
    await world.env.advance(5_000);
    const turns = all.map(({ waitsMs }) => waitsMs.length);
    const handovers = turns.reduce((sum, each) => sum + each, 0);
    expect(Math.min(...turns)).toBeGreaterThan(0);
    expect(Math.max(...turns)).toBeLessThanOrEqual(2 * Math.min(...turns));
    expect(world.attempts / handovers).toBeLessThan(1.5);
    for (const { stop } of all) stop();
    await world.env.advance(5_000);
  });

  it("do not starve, however many wait in another", async () => {
    const world = new World();
    const crowded = world.process("crowded");
    const many = Array.from({ length: 20 }, () => takeTurns(world, crowded));
    const alone = takeTurns(world, world.process("alone"));
    await world.env.advance(6_000);
    const others = many.reduce((sum, { waitsMs }) => sum + waitsMs.length, 0);
    expect(alone.waitsMs.length).toBeGreaterThan(others / 4);
    for (const { stop } of [...many, alone]) stop();
    await world.env.advance(5_000);
  });

  it("lose one deadline, once, to one that died", async () => {
    const world = new World();
    const dead = world.process("dead");
    const holder = world.process("holder");
    const [waiter, other] = [world.process("waiter"), world.process("other")];
    const held = await waited(world, holder.acquire("job"));
    // It waits first, and never comes back: its ticket is all that is left of it.
    const gone = new AbortController();
    const waiting = dead.acquire("job", { wait: "forever", signal: gone.signal }).catch(() => undefined);
    await world.env.advance(50);
    const [ticket] = (await world.store.list({ tenant: "default", prefix: TICKET_PREFIX, limit: 1 })).records;
    gone.abort();
    await waiting;
    await world.env.advance(50);
    await world.store.apply([{ key: ticket!.key, expected: null, next: { ...ticket!, nonce: "again" } }]);
    const all = [takeTurns(world, waiter), takeTurns(world, other)];
    await world.env.advance(100);
    await waited(world, held.release());
    await world.env.advance(1_000);
    for (const { waitsMs } of all) waitsMs.length = 0;
    await world.env.advance(2_000);
    const slow = all.flatMap(({ waitsMs }) => waitsMs).filter((each) => each > 200);
    expect(slow).toEqual([]);
    expect(all.map(({ waitsMs }) => waitsMs.length > 100)).toEqual([true, true]);
    for (const { stop } of all) stop();
    await world.env.advance(5_000);
  });

  it("leave no ticket behind when nobody waits any more", async () => {
    const world = new World();
    const [first, second] = [world.process("first"), world.process("second")];
    const held = await waited(world, first.acquire("job"));
    const waiting = second.acquire("job", { wait: "1m" });
    await world.env.advance(100);
    expect(await world.tickets()).toBe(1);
    await waited(world, held.release());
    await waited(world, (await waited(world, waiting)).release());
    await world.env.advance(3_000);
    expect(await world.tickets()).toBe(0);
  });

  it("write a ticket again that another deleted, because it took them for dead", async () => {
    const world = new World();
    const [first, second] = [world.process("first"), world.process("second")];
    const held = await waited(world, first.acquire("job"));
    const waiting = second.acquire("job", { wait: "1m" });
    await world.env.advance(100);
    const { records } = await world.store.list({ tenant: "default", prefix: TICKET_PREFIX, limit: 100 });
    const [{ key, holder } = { key: null, holder: "" }] = records;
    expect(key).not.toBeNull();
    await world.store.apply([{ key: key!, expected: await versionOf(world, key!), next: null }]);
    await world.env.advance(100);
    const again = await world.store.list({ tenant: "default", prefix: TICKET_PREFIX, limit: 100 });
    expect(again.records.map((record) => record.holder)).toEqual([holder]);
    await waited(world, held.release());
    await waited(world, (await waited(world, waiting)).release());
    await world.env.advance(5_000);
  });

  it("need no ticket while all of them are in one process", async () => {
    const world = new World();
    const process = world.process("only");
    const all = Array.from({ length: 5 }, () => takeTurns(world, process));
    let most = 0;
    for (let step = 0; step < 50; step += 1) {
      await world.env.advance(20);
      most = Math.max(most, await world.tickets());
    }
    expect(most).toBe(0);
    expect(Math.min(...all.map(({ waitsMs }) => waitsMs.length))).toBeGreaterThan(20);
    for (const { stop } of all) stop();
    await world.env.advance(5_000);
  });

  it.each([
    [
      "one becomes free after the other",
      async (world: World, held: readonly Lease[]): Promise<void> => {
        for (const lease of held) await waited(world, lease.release());
      },
    ],
    [
      "all become free at once",
      async (world: World, held: readonly Lease[]): Promise<void> => {
        await waited(world, Promise.all(held.map((lease) => lease.release())));
      },
    ],
  ])("are reserved a slot each when %s", async (_when, release) => {
    const world = new World();
    const holder = world.process("holder");
    const slots = { slots: 2 };
    const held = [
      await waited(world, holder.acquire("gpu", slots)),
      await waited(world, holder.acquire("gpu", slots)),
    ];
    const waits = ["first", "second"].map((name) => {
      const { env } = world;
      return world
        .process(name)
        .acquire("gpu", { ...slots, wait: "1m" })
        .then((lease) => ({ lease, atMs: env.monotonicMs() }));
    });
    // The holder sees their tickets when it waits itself.
    const own = holder.acquire("gpu", { ...slots, wait: 500 }).catch(() => null);
    await world.env.advance(600);
    await own;
    const releasedMs = world.env.monotonicMs();
    await release(world, held);
    const served = await waited(world, Promise.all(waits));
    for (const { atMs } of served) expect(atMs - releasedMs).toBeLessThan(100);
    for (const { lease } of served) await waited(world, lease.release());
    await world.env.advance(5_000);
  });

  it("are served at once by one that came when others had been served already", async () => {
    const world = new World();
    let lease = await waited(world, world.process("first").acquire("job"));
    for (const name of ["second", "third", "fourth"]) {
      const waiting = world.process(name).acquire("job", { wait: "1m" });
      await world.env.advance(100);
      const releasedMs = world.env.monotonicMs();
      await waited(world, lease.release());
      lease = await waited(world, waiting);
      // And not when the time has passed that the key is kept for a ticket.
      expect(world.env.monotonicMs() - releasedMs, name).toBeLessThan(100);
    }
    await waited(world, lease.release());
    await world.env.advance(5_000);
    expect(await world.tickets()).toBe(0);
  });

  it("go on when one leaves that was just reserved for", async () => {
    const world = new World();
    const [a, b, c] = [world.process("a"), world.process("b"), world.process("c")];
    const held = await waited(world, a.acquire("job"));
    const gone = new AbortController();
    const left = b.acquire("job", { wait: "1m", signal: gone.signal }).catch((error: Error) => error.name);
    await world.env.advance(20);
    const waiting = c.acquire("job", { wait: "1m" });
    await world.env.advance(20);
    expect((c.executor as WaitQueue).view({ tenant: "default", name: "job" }).waiting).toBe(1);
    gone.abort();
    const releasing = held.release();
    expect(await left).toBe("AbortError");
    await waited(world, releasing);
    const lease = await waited(world, waiting);
    expect(lease.holder).toBe("c");
    await waited(world, lease.release());
    await world.env.advance(5_000);
  });
});

async function versionOf({ store }: World, key: LeaseKey): Promise<string | null> {
  const [stored] = (await store.read([key])).records;
  return stored?.kind === "found" ? stored.version : null;
}

/** Lets time run until it has settled. */
async function waited<Value>({ env }: World, promise: Promise<Value>): Promise<Value> {
  let isDone = false;
  const done = (): void => {
    isDone = true;
  };
  promise.then(done, done);
  for (let ms = 0; !isDone && ms < 10_000; ms += 1) await env.advance(1);
  return await promise;
}

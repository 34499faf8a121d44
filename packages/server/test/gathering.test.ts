/** When calls to a slow store wait for each other. The store is played by hand, and so is the time. */
import { type LeaseStore, realEnv } from "solehold";
import { ManualEnv } from "solehold/env";
import { describe, expect, it } from "vitest";
import { Gathering, gatheredStore } from "../src/gathering.ts";

type Writes = Parameters<LeaseStore["apply"]>[0];
type Reply = Awaited<ReturnType<LeaseStore["apply"]>>;

interface Made {
  readonly count: number;
  answer(): void;
  fail(error: Error): void;
}

const MANY = 32;
const SLOW_MS = 6;
/** What a call waits at most. */
const PATIENCE_MS = SLOW_MS / 2;

class Played {
  readonly env = new ManualEnv();
  /** Calls that reached the store and were not answered. */
  readonly made: Made[] = [];
  readonly ended: string[] = [];
  readonly #gathering = new Gathering(this.env, (writes) => this.#make(writes), 2);

  /** Somebody asks for so many writes. */
  async call(count: number): Promise<void> {
    const writes = new Array(count).fill(null) as unknown as Writes;
    this.#gathering.apply(writes).then(
      () => this.ended.push(`${count} done`),
      (error: Error) => this.ended.push(`${count} ${error.message}`),
    );
    await this.#settle();
  }

  /** All that are with the store are answered after so long. */
  async answerAfter(tookMs: number): Promise<void> {
    await this.env.advance(tookMs);
    for (const each of this.made.splice(0)) each.answer();
    await this.#settle();
  }

  async answerFirstAfter(tookMs: number): Promise<void> {
    await this.env.advance(tookMs);
    this.made.shift()?.answer();
    await this.#settle();
  }

  async pass(ms: number): Promise<void> {
    await this.env.advance(ms);
    await this.#settle();
  }

  get counts(): readonly number[] {
    return this.made.map(({ count }) => count);
  }

  /** Calls of `count`, one after the other, until it is known what they take. */
  async learn(tookMs: number, count = MANY): Promise<void> {
    for (let round = 0; round < 200; round += 1) {
      await this.call(count);
      await this.answerAfter(tookMs);
      await this.pass(100);
    }
    this.ended.length = 0;
  }

  #make({ length: count }: Writes): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.made.push({ count, answer: () => resolve({} as Reply), fail: reject });
    });
  }

  #settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

async function played(tookMs: number, count?: number): Promise<Played> {
  const world = new Played();
  await world.learn(tookMs, count);
  return world;
}

describe("calls to a quick store", () => {
  it("are made at once, also while another is under way and after it", async () => {
    const world = await played(1);
    await world.call(MANY);
    await world.call(MANY);
    expect(world.counts).toEqual([MANY, MANY]);
    await world.answerAfter(1);
    await world.call(3);
    expect(world.counts).toEqual([3]);
  });

  it("are made at once also if now and then one takes long", async () => {
    const world = await played(1);
    for (let round = 0; round < 40; round += 1) {
      await world.call(MANY);
      await world.answerAfter(round % 4 === 0 ? 1 : 5);
      await world.call(MANY - 1);
      expect(world.counts).toEqual([MANY - 1]);
      await world.answerAfter(1);
      await world.pass(PATIENCE_MS);
    }
  });

  it("are quick also if one is always under way: what a call waits for another is not its own time", async () => {
    const world = await played(1);
    await world.call(MANY);
    for (let round = 0; round < 20; round += 1) {
      await world.call(MANY);
      expect(world.counts).toEqual([MANY, MANY]);
      await world.answerFirstAfter(2);
    }
  });
});

describe("calls to a slow store", () => {
  it("wait for the one under way, and go with those that its answers bring", async () => {
    const world = await played(SLOW_MS);
    await world.call(MANY);
    await world.call(MANY + 1);
    expect(world.counts).toEqual([MANY]);
    await world.answerAfter(SLOW_MS);
    expect([world.counts, world.ended]).toEqual([[], ["32 done"]]);
    await world.pass(PATIENCE_MS - 1);
    await world.call(MANY);
    expect(world.counts).toEqual([MANY + 1, MANY]);
  });

  it("that come one after the other, as answers do that left together, are made together, too", async () => {
    const world = await played(SLOW_MS);
    await world.call(MANY);
    await world.call(MANY);
    await world.answerAfter(SLOW_MS);
    await world.call(MANY);
    for (let round = 0; round < 10; round += 1) {
      await world.answerAfter(SLOW_MS);
      await world.call(MANY);
      expect(world.counts).toEqual([]);
      await world.call(MANY);
      expect(world.counts).toEqual([MANY, MANY]);
    }
  });

  it("go on as soon as all came back that were answered", async () => {
    const world = await played(SLOW_MS);
    await world.call(MANY);
    await world.answerAfter(SLOW_MS);
    await world.call(MANY - 1);
    expect(world.counts).toEqual([]);
    await world.call(1);
    expect(world.counts).toEqual([MANY - 1, 1]);
    await world.answerAfter(SLOW_MS);
    await world.call(MANY);
    expect(world.counts).toEqual([MANY]);
  });

  it("go on when as many wait as can be under way, for then no other can come", async () => {
    const world = await played(SLOW_MS);
    await world.call(MANY);
    await world.answerAfter(SLOW_MS);
    await world.call(3);
    expect(world.counts).toEqual([]);
    await world.call(4);
    expect(world.counts).toEqual([3, 4]);
  });

  it("wait no longer than a part of what a call takes", async () => {
    const world = await played(SLOW_MS);
    await world.call(MANY);
    await world.answerAfter(SLOW_MS);
    await world.call(5);
    await world.pass(PATIENCE_MS - 0.5);
    expect(world.counts).toEqual([]);
    await world.pass(1);
    expect(world.counts).toEqual([5]);
  });

  it("wait less and less often where it was in vain, and as before once it was not", async () => {
    const world = await played(SLOW_MS);
    /** Many are answered, then somebody asks for so many: how it went. */
    const round = async (count: number): Promise<"waited" | "went on"> => {
      await world.call(MANY);
      await world.answerAfter(SLOW_MS);
      await world.call(count);
      const hasWaited = world.counts.length === 0;
      if (hasWaited) await world.pass(PATIENCE_MS + 1);
      await world.answerAfter(SLOW_MS);
      await world.pass(PATIENCE_MS + 1);
      return hasWaited ? "waited" : "went on";
    };
    const wentOnAfter = async (): Promise<number> => {
      let rounds = 0;
      while ((await round(2)) === "went on") rounds += 1;
      return rounds;
    };
    expect(await round(2)).toBe("waited");
    const pauses = [await wentOnAfter(), await wentOnAfter(), await wentOnAfter(), await wentOnAfter()];
    expect(pauses).toEqual([0, 1, 2, 4]);
    // Two calls of a half each: the second ends the wait of the first.
    while (world.made.length === 0) {
      await world.call(MANY);
      await world.answerAfter(SLOW_MS);
      await world.call(MANY / 2);
      if (world.counts.length > 0) await world.answerAfter(SLOW_MS);
      else await world.call(MANY / 2);
    }
    expect(world.counts).toEqual([MANY / 2, MANY / 2]);
    await world.answerAfter(SLOW_MS);
    await world.pass(PATIENCE_MS + 1);
    expect([await round(2), await wentOnAfter(), await wentOnAfter()]).toEqual(["waited", 0, 1]);
  });

  it("do not wait after small ones", async () => {
    const world = await played(SLOW_MS, 15);
    await world.call(15);
    await world.answerAfter(SLOW_MS);
    await world.call(1);
    expect(world.counts).toEqual([1]);
  });

  it("are not held up by one that fails, and each hears of its own failure only", async () => {
    const world = await played(SLOW_MS);
    await world.call(MANY);
    await world.call(MANY + 1);
    world.made.splice(0)[0]?.fail(new Error("the disk is full"));
    await world.pass(PATIENCE_MS + 1);
    expect([world.counts, world.ended]).toEqual([[MANY + 1], ["32 the disk is full"]]);
    await world.answerAfter(SLOW_MS);
    expect(world.ended).toEqual(["32 the disk is full", "33 done"]);
  });
});

describe("a store's calls", () => {
  it("are gathered for the one on this machine's disk, and for no other", () => {
    const store = { capabilities: { maxConcurrentCalls: 2 } } as unknown as LeaseStore;
    const apply = async (): Promise<Reply> => ({}) as Reply;
    const changed = ["embedded", "redis", "postgres"].map((name) => {
      const given: LeaseStore = { ...store, name, apply };
      return gatheredStore(given, realEnv).apply !== apply;
    });
    expect(changed).toEqual([true, false, false]);
  });
});

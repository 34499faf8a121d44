/** Many processes that wait for one key, and hear at the same instant that it is free. */
import { setMaxListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { Lines } from "../../src/client/wait-queues.ts";
import { delay, ManualEnv } from "../../src/env/index.ts";
import type { CommandOutcome, LeaseExecutor } from "../../src/executor/index.ts";
import type { StoredRecord, StoreEvent, WatchScope } from "../../src/store/index.ts";

const key = { tenant: "default", name: "wanted" };
const NEWS_MS = 0.5;
const ATTEMPT_MS = 1;

const granted = { kind: "applied", validForMs: 30_000 } as CommandOutcome;
const denied: CommandOutcome = {
  kind: "refused",
  decision: { kind: "denied", reason: "LEASE_HELD_BY_OTHER", heldBy: "other", heldUntilMs: 60_000 },
  storeTimeMs: 0,
};

// Loading takes real time, of which this world knows nothing.
/** A key, and whoever listens for news of it. Attempts and news take their time. */
class World {
  readonly env = new ManualEnv({ seed: 7 });
  readonly scopes: WatchScope[] = [];
  readonly heard: StoredRecord[] = [];
  attempts = 0;
  isHeld = true;
  #generation = 1n;
  readonly #listeners = new Set<(event: StoreEvent) => void>();

  readonly attempt = async (): Promise<CommandOutcome> => {
    this.attempts += 1;
    await delay(this.env, ATTEMPT_MS);
    if (this.isHeld) return denied;
    this.isHeld = true;
    this.announce("yes");
    return granted;
  };

  get listeners(): number {
    return this.#listeners.size;
  }

  release(by = "somebody"): void {
    this.isHeld = false;
    this.announce("no", by);
  }

  announce(held: "yes" | "no", by = "somebody", generation: bigint = this.#nextGeneration(held)): void {
    const record = { key, holder: by, state: held === "yes" ? "held" : "released", generation };
    const stored = { kind: "found", version: "1", record } as unknown as StoredRecord;
    const event: StoreEvent = { kind: "changed", key, stored };
    this.env.timer(NEWS_MS, () => {
      for (const listener of this.#listeners) listener(event);
    });
  }

  /** A release is of the grant before it. */
  #nextGeneration(held: "yes" | "no"): bigint {
    if (held === "yes") this.#generation += 1n;
    return this.#generation;
  }

  /** A process of its own. */
  lines(): Lines {
    const executor = {
      watch: async (scope: WatchScope, listener: (event: StoreEvent) => void) => {
        this.scopes.push(scope);
        this.#listeners.add(listener);
        return { close: async () => void this.#listeners.delete(listener) };
      },
      onHint: (_key: unknown, stored: StoredRecord) => void this.heard.push(stored),
    };
    return new Lines({ env: this.env, executor: executor as unknown as LeaseExecutor });
  }

  wait(lines: Lines, signal?: AbortSignal): Promise<CommandOutcome> {
    return lines.wait({ key, waitMs: 60_000, signal, attempt: this.attempt });
  }

  async isServedWithin(ms: number, waiting: Promise<CommandOutcome>): Promise<boolean> {
    let isServed = false;
    waiting.then(() => {
      isServed = true;
    });
    await this.env.advance(ms);
    return isServed;
  }
}

interface Turns {
  readonly world: World;
  readonly served: number[];
  readonly signal: AbortSignal;
  readonly awayMs: (random: number) => number;
  /** Of each process. */
  readonly marks: ReadonlyMap<Lines, string>;
}

/** Takes the key and gives it back, over and over, until the signal. */
async function takeTurns({ world, served, signal, awayMs, marks }: Turns, index: number, lines: Lines) {
  while (!signal.aborted) {
    await world.wait(lines, signal);
    served[index] = (served[index] ?? 0) + 1;
    await delay(world.env, 1);
    world.release(marks.get(lines) ?? "");
    await delay(world.env, awayMs(world.env.random()));
  }
}

interface CrowdResult {
  readonly served: readonly number[];
  readonly handovers: number;
  readonly attemptsEach: number;
}

/** `lines` says in which process each of them waits. Counts what happens after the first 500 ms. */
async function crowd(
  world: World,
  lines: readonly Lines[],
  forMs: number,
  awayMs: Turns["awayMs"] = () => 2,
): Promise<CrowdResult> {
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const served: number[] = Array(lines.length).fill(0);
  const marks = new Map([...new Set(lines)].map((each, index) => [each, `process ${index}`]));
  const turns: Turns = { world, served, signal: ending.signal, awayMs, marks };
  const all = lines.map((each, index) => takeTurns(turns, index, each).catch(() => undefined));
  await world.env.advance(1);
  world.release("nobody");
  await world.env.advance(500);
  const before = { attempts: world.attempts, served: [...served] };
  await world.env.advance(forMs);
  const counts = served.map((count, index) => count - (before.served[index] ?? 0));
  const handovers = sum(counts);
  const attemptsEach = (world.attempts - before.attempts) / handovers;
  ending.abort();
  await world.env.advance(100);
  await Promise.all(all);
  return { served: counts, handovers, attemptsEach };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

function median(counts: readonly number[]): number {
  return [...counts].sort((a, b) => a - b)[counts.length >> 1] ?? Number.NaN;
}

describe("waiting in a crowd", () => {
  it("of 64 processes serves every one in its turn, with hardly an attempt in vain", async () => {
    const world = new World();
    const lines = Array.from({ length: 64 }, () => world.lines());
    const { served, handovers, attemptsEach } = await crowd(world, lines, 1_000);
    // A turn takes 2.5 ms if nobody hesitates.
    expect(handovers).toBeGreaterThan(0.8 * (1_000 / 2.5));
    expect(attemptsEach).toBeLessThan(2);
    expect(Math.min(...served)).toBeGreaterThan(0);
    expect(Math.max(...served)).toBeLessThanOrEqual(median(served) * 2);
  });

  it("whose members are away for as long as they like serves every one", async () => {
    const world = new World();
    const lines = Array.from({ length: 32 }, () => world.lines());
    const { served, handovers, attemptsEach } = await crowd(world, lines, 2_000, (random) => random * 60);
    expect(handovers).toBeGreaterThan(0.6 * (2_000 / 2.5));
    expect(attemptsEach).toBeLessThan(3);
    expect(Math.min(...served)).toBeGreaterThan(median(served) / 4);
    expect(Math.max(...served)).toBeLessThan(median(served) * 4);
  });

  it("of four is not held up, and all are served alike", async () => {
    const world = new World();
    const { served, handovers } = await crowd(
      world,
      Array.from({ length: 4 }, () => world.lines()),
      2_000,
    );
    // Holding takes 1 ms, the news half of one and an attempt 1: nobody need wait any longer.
    expect(handovers).toBeGreaterThan(0.85 * (2_000 / 2.5));
    expect(Math.min(...served)).toBeGreaterThan(Math.max(...served) / 2);
  });

  it("lets no process starve, however many wait in another", async () => {
    const world = new World();
    const many = world.lines();
    const lines = [world.lines(), ...Array<Lines>(20).fill(many)];
    const { served } = await crowd(world, lines, 1_000);
    const [lone = 0, ...others] = served;
    expect(lone).toBeGreaterThan(sum(others) / 4);
    expect(Math.min(...others)).toBeGreaterThan(0);
  });

  it("of one process makes one attempt a handover, first come, first served", async () => {
    const world = new World();
    const lines = Array<Lines>(16).fill(world.lines());
    const { served, handovers, attemptsEach } = await crowd(world, lines, 1_000);
    expect(attemptsEach).toBeLessThan(1.05);
    expect(handovers).toBeGreaterThan(0.95 * (1_000 / 2.5));
    expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(1);
  });

  it("of which most have left is soon served as quickly as before", async () => {
    const world = new World();
    const stayers = [world.lines(), world.lines()];
    await crowd(world, [...stayers, ...Array.from({ length: 30 }, () => world.lines())], 200);
    const { handovers } = await crowd(world, stayers, 500);
    // Two hand it over to each other; each is away for 2 ms.
    expect(handovers).toBeGreaterThan(0.6 * (500 / 2.5));
  });

  it("does not try for a key that was said to be taken meanwhile", async () => {
    const world = new World();
    const lines = world.lines();
    const ending = new AbortController();
    // It has had its turn, and others are due before it.
    const waiting = world.wait(lines, ending.signal).catch(() => undefined);
    await world.env.advance(10);
    for (const by of ["a", "b", "c", "d", "e", "f"]) {
      world.announce("no", by);
      await world.env.advance(NEWS_MS);
      world.announce("yes", by);
      await world.env.advance(20);
    }
    world.release("a");
    await world.env.advance(100);
    await waiting;
    const again = world.wait(lines, ending.signal).catch(() => undefined);
    await world.env.advance(20);
    const before = world.attempts;
    world.announce("no", "b");
    world.announce("yes", "c");
    await world.env.advance(200);
    expect(world.attempts).toBe(before);
    ending.abort();
    await again;
  });

  it("is not misled by old news of a grant that was given back", async () => {
    const world = new World();
    const lines = world.lines();
    const first = world.wait(lines);
    await world.env.advance(10);
    for (const by of ["a", "b", "c", "d"]) {
      world.announce("no", by);
      await world.env.advance(NEWS_MS);
      world.announce("yes", by);
      await world.env.advance(20);
    }
    world.release("a");
    await world.env.advance(100);
    await first;
    const again = world.wait(lines);
    await world.env.advance(20);
    // It is not its turn, but nobody else comes.
    world.isHeld = false;
    world.announce("no", "b", 700n);
    world.announce("yes", "b", 700n);
    expect(await world.isServedWithin(50, again)).toBe(true);
  });

  it("tries at once when alone", async () => {
    const world = new World();
    const lines = world.lines();
    const waiting = world.wait(lines);
    await world.env.advance(10);
    const startedMs = world.env.monotonicMs();
    world.release();
    let tookMs = Number.NaN;
    waiting.then(() => {
      tookMs = world.env.monotonicMs() - startedMs;
    });
    await world.env.advance(500);
    expect(tookMs).toBe(NEWS_MS + ATTEMPT_MS);
  });

  it("hears a release that comes while its attempt is under way", async () => {
    const world = new World();
    const waiting = world.wait(world.lines());
    await world.env.advance(10);
    world.announce("no");
    await world.env.advance(NEWS_MS);
    // The attempt was decided before the release, and its answer comes after the news.
    world.env.timer(ATTEMPT_MS - 0.1, () => {
      world.announce("no");
    });
    world.env.timer(ATTEMPT_MS + 0.2, () => {
      world.isHeld = false;
    });
    expect(await world.isServedWithin(10, waiting)).toBe(true);
  });

  it("gives what came with the event to the attempt that it leads to", async () => {
    const world = new World();
    const waiting = world.wait(world.lines());
    await world.env.advance(10);
    world.isHeld = false;
    world.announce("no", "somebody", 700n);
    await world.env.advance(10);
    await waiting;
    expect(world.heard).toMatchObject([{ kind: "found", record: { generation: 700n } }]);
  });

  it("watches its key, and stops listening when nobody came back", async () => {
    const world = new World();
    const lines = world.lines();
    const ending = new AbortController();
    const waiting = world.wait(lines, ending.signal).catch(() => undefined);
    await world.env.advance(5);
    expect(world.scopes).toEqual([{ tenant: "default", prefix: "wanted" }]);
    ending.abort();
    await waiting;
    await world.env.advance(1_000);
    expect(world.listeners).toBe(1);
    const again = world.wait(lines).catch(() => undefined);
    await world.env.advance(10);
    world.release();
    await world.env.advance(10);
    await again;
    expect(world.scopes).toHaveLength(1);
    await world.env.advance(2_100);
    expect(world.listeners).toBe(0);
    expect(world.env.pendingTimers).toBe(0);
  });

  it("stops listening when it is closed", async () => {
    const world = new World();
    const lines = world.lines();
    const waiting = world.wait(lines);
    await world.env.advance(10);
    world.release();
    await world.env.advance(10);
    await waiting;
    lines.close();
    await world.env.advance(0);
    expect(world.listeners).toBe(0);
    expect(world.env.pendingTimers).toBe(0);
  });

  it("keeps few of the rooms that nobody is in", async () => {
    const world = new World();
    const lines = world.lines();
    for (let index = 0; index < 100; index += 1) {
      world.isHeld = true;
      const patience = { key: { ...key, name: `wanted/${index}` }, waitMs: 3, signal: undefined };
      const waiting = lines.wait({ ...patience, attempt: world.attempt }).catch(() => undefined);
      await world.env.advance(5);
      await waiting;
    }
    expect(world.listeners).toBe(64);
  });
});

/** Many processes that wait for one key, and hear at the same instant that it is free. */
import { setMaxListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { waitInTurn } from "../../src/client/waiting.ts";
import { WaitingRooms } from "../../src/client/waiting-room.ts";
import { delay, ManualEnv } from "../../src/env/index.ts";
import type { CommandOutcome, LeaseManager } from "../../src/manager/index.ts";
import type { StoreEvent, WatchScope } from "../../src/stores/index.ts";

const key = { tenant: "default", name: "wanted" };
const NEWS_MS = 0.5;
const ATTEMPT_MS = 1;

const granted = { kind: "applied" } as CommandOutcome;
const denied: CommandOutcome = {
  kind: "refused",
  decision: { kind: "denied", reason: "LEASE_HELD_BY_OTHER", heldBy: "other", heldUntilMs: null },
  storeTimeMs: 0,
};

/** A key, and whoever listens for news of it. Attempts and news take their time. */
class World {
  readonly env = new ManualEnv({ seed: 7 });
  readonly scopes: WatchScope[] = [];
  attempts = 0;
  isHeld = true;
  readonly #listeners = new Set<(event: StoreEvent) => void>();

  readonly attempt = async (): Promise<CommandOutcome> => {
    this.attempts += 1;
    await delay(this.env, ATTEMPT_MS);
    if (this.isHeld) return denied;
    this.isHeld = true;
    this.announce("yes");
    return granted;
  };

  release(): void {
    this.isHeld = false;
    this.announce("no");
  }

  announce(held: "yes" | "no"): void {
    const event: StoreEvent = { kind: "changed", key, record: null, held };
    this.env.timer(NEWS_MS, () => {
      for (const listener of this.#listeners) listener(event);
    });
  }

  /** A process of its own. */
  rooms(): WaitingRooms {
    const manager = {
      watch: async (scope: WatchScope, listener: (event: StoreEvent) => void) => {
        this.scopes.push(scope);
        this.#listeners.add(listener);
        return { close: async () => void this.#listeners.delete(listener) };
      },
    };
    return new WaitingRooms({ env: this.env, manager: manager as unknown as LeaseManager });
  }

  wait(rooms: WaitingRooms, signal?: AbortSignal): Promise<CommandOutcome> {
    return waitInTurn(this.env, rooms, { key, waitMs: 60_000, signal, attempt: this.attempt });
  }
}

/** Takes the key and gives it back, over and over, until the signal. */
async function takeTurns(world: World, served: number[], index: number, signal: AbortSignal): Promise<void> {
  const rooms = world.rooms();
  while (!signal.aborted) {
    await world.wait(rooms, signal);
    served[index] = (served[index] ?? 0) + 1;
    await delay(world.env, 1);
    world.release();
    await delay(world.env, 2);
  }
}

describe("waiting in a crowd", () => {
  it("serves everybody, with few attempts a handover", async () => {
    const world = new World();
    const ending = new AbortController();
    setMaxListeners(0, ending.signal);
    const served: number[] = Array(32).fill(0);
    const all = served.map((_, index) =>
      takeTurns(world, served, index, ending.signal).catch(() => undefined),
    );
    await world.env.advance(1);
    world.release();
    await world.env.advance(500);
    const before = { attempts: world.attempts, handovers: served.reduce((sum, count) => sum + count, 0) };
    await world.env.advance(1_000);
    const handovers = served.reduce((sum, count) => sum + count, 0) - before.handovers;
    // One comes, one gets it: two are needed. If all tried there were more than thirty.
    expect((world.attempts - before.attempts) / handovers).toBeLessThan(5);
    // A turn takes 2.5 ms if nobody hesitates.
    expect(handovers).toBeGreaterThan(200);
    expect(Math.min(...served)).toBeGreaterThan(0);
    ending.abort();
    await world.env.advance(10);
    await Promise.all(all);
  });

  it("of four is not held up: hardly anybody gets the key again before the others", async () => {
    const world = new World();
    const ending = new AbortController();
    setMaxListeners(0, ending.signal);
    const served: number[] = Array(4).fill(0);
    const all = served.map((_, index) =>
      takeTurns(world, served, index, ending.signal).catch(() => undefined),
    );
    await world.env.advance(1);
    world.release();
    await world.env.advance(2_000);
    // Holding takes 1 ms, the news half of one and an attempt 1: nobody need wait any longer.
    expect(served.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0.85 * (2_000 / 2.5));
    expect(Math.min(...served)).toBeGreaterThan(Math.max(...served) / 3);
    ending.abort();
    await world.env.advance(10);
    await Promise.all(all);
  });

  it("does not try for a key that was said to be taken meanwhile", async () => {
    const world = new World();
    const rooms = world.rooms();
    const ending = new AbortController();
    const waiting = world.wait(rooms, ending.signal).catch(() => undefined);
    await world.env.advance(10);
    // It comes too late again and again.
    for (let round = 0; round < 20; round += 1) {
      world.announce("no");
      await world.env.advance(200);
    }
    const before = world.attempts;
    world.announce("no");
    world.announce("yes");
    await world.env.advance(300);
    expect(world.attempts).toBe(before);
    ending.abort();
    await waiting;
  });

  it("tries at once when alone, and again so when the crowd is gone", async () => {
    const world = new World();
    const rooms = world.rooms();
    const timeOfHandover = async (): Promise<number> => {
      const waiting = world.wait(rooms);
      await world.env.advance(10);
      const startedMs = world.env.monotonicMs();
      world.release();
      let tookMs = Number.NaN;
      waiting.then(() => {
        tookMs = world.env.monotonicMs() - startedMs;
      });
      await world.env.advance(500);
      await waiting;
      return tookMs;
    };
    expect(await timeOfHandover()).toBe(NEWS_MS + ATTEMPT_MS);
    // A crowd: others are always faster.
    const ending = new AbortController();
    const inVain = world.wait(rooms, ending.signal).catch(() => undefined);
    for (let round = 0; round < 20; round += 1) {
      world.announce("no");
      await world.env.advance(200);
    }
    ending.abort();
    await inVain;
    const times: number[] = [];
    for (let round = 0; round < 12; round += 1) times.push(await timeOfHandover());
    expect(Math.max(...times)).toBeGreaterThan(2);
    expect(times.at(-1)).toBe(NEWS_MS + ATTEMPT_MS);
  });

  it("asks for no more than whether the key is held", async () => {
    const world = new World();
    const ending = new AbortController();
    const waiting = world.wait(world.rooms(), ending.signal).catch(() => undefined);
    await world.env.advance(5);
    expect(world.scopes).toEqual([{ tenant: "default", prefix: "wanted", wants: "holding" }]);
    ending.abort();
    await waiting;
  });
});

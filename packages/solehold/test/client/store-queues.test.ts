/** Waiting over a store that keeps the line: it says when it is this process's turn. */
import { describe, expect, it } from "vitest";
import { Lines } from "../../src/client/wait-queues.ts";
import { delay, ManualEnv } from "../../src/env/index.ts";
import type { CommandOutcome, LeaseExecutor } from "../../src/executor/index.ts";
import type { QueueTicket, StoreEvent } from "../../src/store/index.ts";

const key = { tenant: "default", name: "wanted" };
const TTL_MS = 30_000;

// Loading takes real time, of which this world knows nothing.
/** A store with a line, in which a process stands. What it is asked is written down. */
class World {
  readonly env = new ManualEnv();
  readonly lines: Lines;
  readonly asked: string[] = [];
  isHeld = true;
  lineFails = false;
  #listener: (event: StoreEvent) => void = () => undefined;

  constructor() {
    const place: QueueTicket = {
      enter: async () => {
        this.asked.push("enter");
        await delay(this.env, 1);
        if (this.lineFails) throw new Error("the store does not answer");
        if (!this.isHeld) this.tell();
      },
      leave: (why) => void this.asked.push(why),
      close: async () => void this.asked.push("close"),
    };
    const executor = {
      joinQueue: async (_key: unknown, listener: (event: StoreEvent) => void) => {
        this.#listener = listener;
        return place;
      },
      watch: async () => {
        this.asked.push("watch");
        return null;
      },
    };
    this.lines = new Lines({ env: this.env, executor: executor as unknown as LeaseExecutor });
  }

  tell(): void {
    this.#listener({ kind: "changed", key, stored: { kind: "absent" } });
  }

  reset(): void {
    this.#listener({ kind: "reset" });
  }

  readonly attempt = async (): Promise<CommandOutcome> => {
    this.asked.push("try");
    await delay(this.env, 1);
    if (!this.isHeld) {
      this.isHeld = true;
      return { kind: "applied", validForMs: TTL_MS } as CommandOutcome;
    }
    const decision = {
      kind: "denied",
      reason: "LEASE_HELD_BY_OTHER",
      heldBy: "other",
      heldUntilMs: TTL_MS,
    } as const;
    return { kind: "refused", decision, storeTimeMs: 0 };
  };

  wait(options: { readonly waitMs?: number; readonly signal?: AbortSignal } = {}): Promise<string> {
    const { waitMs = 60_000, signal } = options;
    return this.lines.wait({ key, waitMs, signal, attempt: this.attempt }).then(
      ({ kind }) => kind,
      (error: Error) => error.name,
    );
  }

  /** What was asked since the last time this was called. */
  async passes(ms: number): Promise<readonly string[]> {
    await this.env.advance(ms);
    return this.asked.splice(0);
  }
}

describe("waiting in a store's line", () => {
  it("is one attempt, one place, and one attempt when it is told", async () => {
    const world = new World();
    const waiting = world.wait();
    expect(await world.passes(100)).toEqual(["try", "enter"]);
    world.isHeld = false;
    world.tell();
    expect(await world.passes(5)).toEqual(["try", "served", "gone"]);
    expect(await waiting).toBe("applied");
  });

  it("takes a place without an attempt when it comes again to a key that somebody had", async () => {
    const world = new World();
    const first = world.wait();
    await world.passes(5);
    world.isHeld = false;
    world.tell();
    await world.passes(5);
    await first;
    const again = world.wait();
    expect(await world.passes(100)).toEqual(["enter"]);
    world.isHeld = false;
    world.tell();
    expect(await world.passes(5)).toContain("try");
    expect(await again).toBe("applied");
  });

  it("has one place for all who wait in this process", async () => {
    const world = new World();
    const both = [world.wait(), world.wait()];
    expect(await world.passes(100)).toEqual(["try", "enter"]);
    world.isHeld = false;
    world.tell();
    // The second enters as soon as the first is served.
    expect(await world.passes(5)).toEqual(["try", "served", "enter"]);
    world.isHeld = false;
    world.tell();
    await world.passes(5);
    expect(await Promise.all(both)).toEqual(["applied", "applied"]);
  });

  it("enters again when somebody else was faster", async () => {
    const world = new World();
    const waiting = world.wait();
    await world.passes(5);
    world.tell();
    expect(await world.passes(5)).toEqual(["try", "enter"]);
    world.isHeld = false;
    world.tell();
    await world.passes(5);
    expect(await waiting).toBe("applied");
  });

  it("gives its place up when it is told to stop, and when its time is over", async () => {
    const world = new World();
    const stop = new AbortController();
    const stopped = world.wait({ signal: stop.signal });
    const late = world.wait({ waitMs: 50 });
    await world.passes(5);
    stop.abort();
    // The other one still waits.
    expect(await world.passes(10)).toEqual([]);
    expect(await stopped).toBe("AbortError");
    expect(await world.passes(50)).toEqual(["try", "gone"]);
    expect(await late).toBe("LeaseTimeoutError");
    expect(await world.passes(3_000)).toEqual(["close"]);
  });

  it("looks by entering again, in case a turn got lost, and tries when the lease may be over", async () => {
    const world = new World();
    const waiting = world.wait();
    await world.passes(5);
    const asked = await world.passes(TTL_MS - 1_000);
    expect(new Set(asked)).toEqual(new Set(["enter"]));
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.length).toBeLessThan(22);
    expect(await world.passes(1_000)).toContain("try");
    world.isHeld = false;
    await world.passes(3_000);
    expect(await waiting).toBe("applied");
  });

  it("looks, and enters again, after turns may have been missed", async () => {
    const world = new World();
    const waiting = world.wait();
    await world.passes(5);
    world.reset();
    expect(await world.passes(5)).toEqual(["try", "enter"]);
    world.isHeld = false;
    world.reset();
    await world.passes(5);
    expect(await waiting).toBe("applied");
  });

  it("looks as often as without a line while it cannot be entered", async () => {
    const world = new World();
    world.lineFails = true;
    const waiting = world.wait();
    await world.passes(5);
    const asked = await world.passes(10_000);
    expect(asked.filter((each) => each === "try").length).toBeGreaterThanOrEqual(3);
    world.isHeld = false;
    await world.passes(3_000);
    expect(await waiting).toBe("applied");
  });
});

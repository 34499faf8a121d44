/** The machine's own clocks, timers and randomness keep the contract of the port. */
import { readFile } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { realEnv } from "../../src/env/index.ts";

function fires(delayMs: number): Promise<void> {
  return new Promise((resolve) => realEnv.timer(delayMs, resolve, { keepAlive: true }));
}

describe("real timers", () => {
  it.each([2 ** 31, 2 ** 31 + 5, 2 ** 32 + 1, 2 ** 53, Number.POSITIVE_INFINITY])(
    "of %d ms do not fire at once, nor spin: a short one is first, and Node has nothing to warn of",
    async (delayMs) => {
      const events: string[] = [];
      const warn = ({ name }: Error): void => void events.push(name);
      process.on("warning", warn);
      const long = realEnv.timer(delayMs, () => events.push("long"));
      await fires(20);
      events.push("short");
      long.cancel();
      process.off("warning", warn);
      expect(events).toEqual(["short"]);
    },
  );

  it("never fire earlier than their delay on the monotonic clock", async () => {
    const delays = Array.from({ length: 400 }, (_, index) => (index % 40) / 4);
    const earlyBy = await Promise.all(
      delays.map(async (delayMs) => {
        const startMs = realEnv.monotonicMs();
        await fires(delayMs);
        return delayMs - (realEnv.monotonicMs() - startMs);
      }),
    );
    expect(earlyBy.filter((ms) => ms > 0)).toEqual([]);
  });

  it("fire in order of their time", async () => {
    const order: number[] = [];
    await Promise.all([30, 10, 20].map(async (delayMs) => fires(delayMs).then(() => order.push(delayMs))));
    expect(order).toEqual([10, 20, 30]);
  });

  it("never fire after they were cancelled, and cancelling twice is fine", async () => {
    let fired = 0;
    const timer = realEnv.timer(1, () => {
      fired += 1;
    });
    timer.cancel();
    timer.cancel();
    await fires(20);
    expect(fired).toBe(0);
  });

  it("of no delay fire in the next turn of the event loop, not in this one and not a millisecond later", async () => {
    // Now it is the turn in which the file was read: what is set from there comes after all that has arrived.
    const order = await new Promise<readonly string[]>((resolve) => {
      readFile(fileURLToPath(import.meta.url), () => {
        const events: string[] = [];
        realEnv.timer(0, () => events.push("timer"));
        setImmediate(() => resolve([...events, "next turn"]));
        queueMicrotask(() => events.push("this turn"));
      });
    });
    expect(order).toEqual(["this turn", "timer", "next turn"]);
  });

  it("fire once, also with a delay below zero, and may be cancelled from their own callback", async () => {
    let fired = 0;
    await new Promise<void>((resolve) => {
      const timer = realEnv.timer(
        -5,
        () => {
          fired += 1;
          timer.cancel();
          resolve();
        },
        { keepAlive: true },
      );
    });
    await fires(5);
    expect(fired).toBe(1);
  });

  it.each([-0.5, -5, -1e12])(
    "of %d ms ask Node for no delay below zero, of which Node 24 warns",
    (delayMs) => {
      const native = vi.spyOn(globalThis, "setTimeout");
      const timer = realEnv.timer(delayMs, () => undefined);
      const asked = native.mock.calls.map(([, ms]) => ms);
      native.mockRestore();
      timer.cancel();
      expect(asked.filter((ms = 0) => ms < 0)).toEqual([]);
    },
  );

  it("keep the process alive only when that is asked for", () => {
    const before = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const quiet = realEnv.timer(60_000, () => undefined);
    const quietCount = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const loud = realEnv.timer(60_000, () => undefined, { keepAlive: true });
    const loudCount = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    quiet.cancel();
    loud.cancel();
    expect([quietCount - before, loudCount - before]).toEqual([0, 1]);
  });
});

describe("deferred work", () => {
  it("runs after all work that is already queued, from wherever it was deferred", async () => {
    const order: string[] = [];
    await nextTurn();
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        void Promise.resolve().then(() => order.push("a promise"));
        realEnv.defer(() => {
          order.push("deferred");
          resolve();
        });
        process.nextTick(() => order.push("a tick"));
        void Promise.resolve()
          .then(() => undefined)
          .then(() => order.push("a chain of promises"));
      });
    });
    expect(order).toEqual(["a tick", "a promise", "a chain of promises", "deferred"]);
  });

  it("runs before the next turn of the event loop", async () => {
    const order: string[] = [];
    setImmediate(() => order.push("next turn"));
    realEnv.defer(() => order.push("deferred"));
    await nextTurn();
    expect(order).toEqual(["deferred", "next turn"]);
  });
});

describe("real clocks and randomness", () => {
  it("the monotonic clock never goes back and is finer than a millisecond", () => {
    const readings = Array.from({ length: 1_000 }, () => realEnv.monotonicMs());
    expect(readings).toEqual([...readings].sort((a, b) => a - b));
    expect(readings.some((reading) => !Number.isInteger(reading))).toBe(true);
  });

  it("the wall clock is the machine's", () => {
    const before = Date.now();
    const wallMs = realEnv.wallMs();
    expect(wallMs).toBeGreaterThanOrEqual(before - 1_000);
    expect(Number.isInteger(wallMs)).toBe(true);
  });

  it("random bytes are never handed out twice, over the edges of the pool", () => {
    const drawn = new Set<string>();
    for (let index = 0; index < 2_000; index += 1) {
      drawn.add(Buffer.from(realEnv.randomBytes(16)).toString("hex"));
      if (index % 100 === 0) expect(realEnv.randomBytes(5_000)).toHaveLength(5_000);
    }
    expect(drawn.size).toBe(2_000);
    expect(realEnv.randomBytes(0)).toHaveLength(0);
  });

  it("what a caller does to its bytes does not change those of the next", () => {
    const bytes = realEnv.randomBytes(16);
    bytes.fill(0);
    expect(Buffer.from(realEnv.randomBytes(16)).equals(Buffer.alloc(16))).toBe(false);
  });

  it("random numbers are from 0 to below 1", () => {
    const numbers = Array.from({ length: 1_000 }, () => realEnv.random());
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
  });

  it("reads the monotonic clock that all processes of the machine share", () => {
    const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6;
    const beforeMs = machineMs();
    const nowMs = realEnv.monotonicMs();
    expect(nowMs).toBeGreaterThanOrEqual(beforeMs);
    expect(nowMs).toBeLessThanOrEqual(machineMs());
  });
});

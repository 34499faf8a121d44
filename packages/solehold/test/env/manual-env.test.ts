/** The world that moves only when a test says so: if it lies, every test that stands on it does. */
import { describe, expect, it } from "vitest";
import { ManualEnv, settle } from "../../src/env/index.ts";

describe("time in a manual world", () => {
  it("stands still until it is advanced, and both clocks advance together", async () => {
    const env = new ManualEnv({ monotonicMs: 10, wallMs: 1_000 });
    await settle();
    expect([env.monotonicMs(), env.wallMs()]).toEqual([10, 1_000]);
    await env.advance(5);
    expect([env.monotonicMs(), env.wallMs()]).toEqual([15, 1_005]);
  });

  it("suspended, moves only the wall clock, and no timer fires", async () => {
    const env = new ManualEnv({ monotonicMs: 0, wallMs: 0 });
    const fired: string[] = [];
    env.timer(10, () => fired.push("timer"));
    env.suspend(3_600_000);
    await settle();
    expect([env.monotonicMs(), env.wallMs(), fired]).toEqual([0, 3_600_000, []]);
    await env.advance(10);
    expect(fired).toEqual(["timer"]);
  });

  it("lets the wall clock be set in both directions", () => {
    const env = new ManualEnv({ wallMs: 5_000 });
    env.stepWall(-3_000);
    expect(env.wallMs()).toBe(2_000);
    env.stepWall(10_000);
    expect(env.wallMs()).toBe(12_000);
  });

  it("paused, moves both clocks while no timer fires; what fell due fires late, in order", async () => {
    const env = new ManualEnv({ monotonicMs: 0, wallMs: 0 });
    const fired: (readonly [string, number])[] = [];
    env.timer(20, () => fired.push(["second", env.monotonicMs()]));
    env.timer(10, () => fired.push(["first", env.monotonicMs()]));
    env.pause(100);
    await settle();
    expect([env.monotonicMs(), env.wallMs(), fired]).toEqual([100, 100, []]);
    await env.advance(0);
    expect(fired).toEqual([
      ["first", 100],
      ["second", 100],
    ]);
  });

  it("never goes back on the monotonic clock: a pause inside a timer may outlast the advance", async () => {
    const env = new ManualEnv({ monotonicMs: 0, wallMs: 0 });
    env.timer(5, () => env.pause(100));
    await env.advance(10);
    expect([env.monotonicMs(), env.wallMs()]).toEqual([105, 105]);
  });

  it("never goes back when two advances overlap", async () => {
    const env = new ManualEnv({ monotonicMs: 0, wallMs: 0 });
    for (const delayMs of [1, 2, 3]) env.timer(delayMs, () => undefined);
    await Promise.all([env.advance(10), env.advance(100)]);
    expect([env.monotonicMs(), env.wallMs()]).toEqual([100, 100]);
  });
});

describe("timers in a manual world", () => {
  it("fire at their time, in order of time and then of creation", async () => {
    const env = new ManualEnv({ monotonicMs: 0 });
    const fired: (readonly [string, number])[] = [];
    const note = (name: string) => (): void => void fired.push([name, env.monotonicMs()]);
    env.timer(20, note("c"));
    env.timer(10, note("a"));
    env.timer(10, note("b"));
    env.timer(31, note("too late"));
    await env.advance(30);
    expect(fired).toEqual([
      ["a", 10],
      ["b", 10],
      ["c", 20],
    ]);
    expect(env.pendingTimers).toBe(1);
  });

  it.each([
    [9, 0],
    [10, 1],
    [11, 1],
  ])("a timer of 10 ms has fired after %i ms: %i times", async (ms, times) => {
    const env = new ManualEnv();
    let fired = 0;
    env.timer(10, () => {
      fired += 1;
    });
    await env.advance(ms);
    expect(fired).toBe(times);
  });

  it("fire once, and never after they were cancelled", async () => {
    const env = new ManualEnv();
    const fired: string[] = [];
    const first = env.timer(10, () => {
      fired.push("first");
      second.cancel();
    });
    const second = env.timer(10, () => fired.push("second"));
    await env.advance(1_000);
    first.cancel();
    second.cancel();
    await env.advance(1_000);
    expect(fired).toEqual(["first"]);
    expect(env.pendingTimers).toBe(0);
  });

  it("that are set by a timer fire within the same advance when they fall due", async () => {
    const env = new ManualEnv({ monotonicMs: 0 });
    const fired: number[] = [];
    const again = (): void => {
      fired.push(env.monotonicMs());
      if (fired.length < 3) env.timer(10, again);
    };
    env.timer(10, again);
    await env.advance(25);
    expect(fired).toEqual([10, 20]);
    await env.advance(5);
    expect(fired).toEqual([10, 20, 30]);
  });

  it("of more than 2^31 - 1 ms wait their whole time, and a negative one fires at once", async () => {
    const env = new ManualEnv();
    const fired: string[] = [];
    env.timer(2 ** 31, () => fired.push("long"));
    env.timer(-5, () => fired.push("negative"));
    await env.advance(0);
    await env.advance(2 ** 31 - 1);
    expect(fired).toEqual(["negative"]);
    await env.advance(1);
    expect(fired).toEqual(["negative", "long"]);
  });

  it("let the promises that one resolved settle before the next fires", async () => {
    const env = new ManualEnv();
    const order: string[] = [];
    env.timer(10, () => {
      order.push("first");
      void Promise.resolve()
        .then(() => undefined)
        .then(() => order.push("its promise"));
    });
    env.timer(11, () => order.push("second"));
    await env.advance(20);
    expect(order).toEqual(["first", "its promise", "second"]);
  });
});

describe("randomness in a manual world", () => {
  it("is the same for the same seed and differs for another", () => {
    const draw = (seed: number): readonly number[] => {
      const env = new ManualEnv({ seed });
      return [env.random(), env.random(), ...env.randomBytes(8)];
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it("is spread: numbers from 0 to below 1, bytes of every value", () => {
    const env = new ManualEnv({ seed: 3 });
    const numbers = Array.from({ length: 10_000 }, () => env.random());
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(numbers.reduce((sum, number) => sum + number, 0) / numbers.length).toBeCloseTo(0.5, 1);
    expect(new Set(env.randomBytes(10_000)).size).toBe(256);
    expect(env.randomBytes(0)).toHaveLength(0);
  });
});

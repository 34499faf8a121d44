/** The small helpers on the port: ids, jitter, delays that can be given up. */
import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { delay, jittered, ManualEnv, randomId, readClocks, realEnv, settle } from "../../src/env/index.ts";

describe("randomId", () => {
  it("has 128 bits in 22 characters of the token alphabet, and no two are alike", () => {
    const ids = Array.from({ length: 1_000 }, () => randomId(realEnv));
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(new Set(ids).size).toBe(1_000);
  });
});

describe("jittered", () => {
  it("stays within its ratio, whatever is drawn", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 100_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.nat(),
        (ms, ratio, seed) => {
          const drawn = jittered(new ManualEnv({ seed }), ms, ratio);
          expect(drawn).toBeGreaterThanOrEqual(ms * (1 - ratio) - 1e-6);
          expect(drawn).toBeLessThanOrEqual(ms * (1 + ratio) + 1e-6);
        },
      ),
    );
  });

  it("reaches both sides", () => {
    const env = new ManualEnv();
    const drawn = Array.from({ length: 100 }, () => jittered(env, 1_000, 0.2));
    expect(Math.min(...drawn)).toBeLessThan(900);
    expect(Math.max(...drawn)).toBeGreaterThan(1_100);
  });
});

describe("readClocks", () => {
  it("reads both clocks", () => {
    const env = new ManualEnv({ monotonicMs: 5, wallMs: 7 });
    expect(readClocks(env)).toEqual({ monotonicMs: 5, wallMs: 7 });
  });
});

describe("delay", () => {
  it("ends after its time and not before", async () => {
    const env = new ManualEnv();
    let ended = false;
    void delay(env, 10).then(() => {
      ended = true;
    });
    await env.advance(9);
    expect(ended).toBe(false);
    await env.advance(1);
    expect(ended).toBe(true);
    expect(env.pendingTimers).toBe(0);
  });

  it("ends at once when the signal aborts, and leaves neither timer nor listener", async () => {
    const env = new ManualEnv();
    const controller = new AbortController();
    let ended = false;
    void delay(env, 10, controller.signal).then(() => {
      ended = true;
    });
    await settle();
    expect(ended).toBe(false);
    controller.abort();
    await settle();
    expect(ended).toBe(true);
    expect(env.pendingTimers).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  it("leaves no listener behind when it ends by time", async () => {
    const env = new ManualEnv();
    const controller = new AbortController();
    const ended = delay(env, 10, controller.signal);
    await env.advance(10);
    await ended;
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  });

  it("does not begin when the signal was aborted before", async () => {
    const env = new ManualEnv();
    await delay(env, 10, AbortSignal.abort());
    expect(env.pendingTimers).toBe(0);
  });
});

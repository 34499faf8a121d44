/** Which leases are alive and when each ends, also where ends are announced late, out of order, or many renewals came before. */
import { describe, expect, it } from "vitest";
import type { LeaseRecord } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { LiveIndex } from "../../src/layers/live-index.ts";
import { recordOf } from "../stores/records.ts";

const TENANT = "default";

function world() {
  const env = new ManualEnv();
  const announced: string[] = [];
  const nowMs = (): number => env.monotonicMs();
  const onExpired = ({ key }: LeaseRecord): void => void announced.push(key.name);
  const index = new LiveIndex({ env, nowMs, onExpired });
  const learn = (name: string, inMs: number, renewals = 0): void =>
    index.learn(recordOf(name, { generation: 1n, renewals, expiresAtMs: nowMs() + inMs }));
  return { env, index, announced, learn };
}

describe("the index of live leases", () => {
  it("announces a short lease at its end although a longer one was there before", async () => {
    const { env, announced, learn } = world();
    learn("long", 60_000);
    learn("short", 1_000);
    await env.advance(1_000);
    expect(announced).toEqual(["short"]);
  });

  it("announces ends in time after a lease was renewed so often that what it keeps is made anew", async () => {
    const { env, announced, learn } = world();
    for (let second = 5; second > 0; second -= 1) learn(`ends-${second}`, second * 1_000);
    for (let renewals = 1; renewals <= 100; renewals += 1) learn("renewed", 60_000, renewals);
    await env.advance(3_000);
    expect(announced).toEqual(["ends-1", "ends-2", "ends-3"]);
  });

  it("takes the end from a renewal that was shorter than what was left, and learns of it after that end", async () => {
    const { env, index, announced, learn } = world();
    learn("shortened", 60_000);
    await env.advance(2_000);
    learn("shortened", -1_000, 1);
    await env.advance(1);
    expect(announced).toEqual(["shortened"]);
    expect(index.count(TENANT)).toBe(0);
  });
});

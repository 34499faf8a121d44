/** What is large: of each caller a few are under way until their answers are taken, and they begin one after the other. */
import { ManualEnv } from "solehold/internal";
import { expect, it } from "vitest";
import type { Call } from "../src/access/call.ts";
import { LOCAL_PRINCIPAL } from "../src/access/principal.ts";
import { Turns } from "../src/access/turns.ts";

type Taken = (listener: () => void) => void;

function callOf(id: string, presence: "there" | "gone" = "there", onTaken: Taken = (taken) => taken()): Call {
  const isGone = (): boolean => presence === "gone";
  const connection = { isGone, isCancelled: () => false, onGone: () => () => undefined, onTaken };
  const principal = { ...LOCAL_PRINCIPAL, id };
  return { principal, traceId: "", address: "", receivedMs: 0, waitedMs: 0, ...connection };
}

it("callers do not wait for each other, and what nobody waits for any more does not begin", async () => {
  const env = new ManualEnv();
  const turns = new Turns(env);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (name: string, call: Call): Promise<void> =>
    turns
      .run(call, () => {
        begun.push(name);
        return new Promise<void>((resolve) => void ends.push(resolve));
      })
      .catch((error: Error) => void begun.push(`${name}: ${error.message}`));
  const asked = ["a1", "a2", "a3", "a4", "a5"].map((name) => ask(name, callOf("a")));
  asked.push(ask("a6", callOf("a", "gone")), ask("a7", callOf("a")), ask("b1", callOf("b")));
  await env.advance(10);
  expect(begun).toEqual(["a1", "a2", "a3", "a4", "b1"]);
  ends.shift()?.();
  await asked[0];
  // Not in the turn in which another one ended.
  expect(begun).toHaveLength(5);
  await env.advance(10);
  expect(begun.slice(5)).toEqual(["a5"]);
  for (let count = 0; count < 20; count += 1) {
    for (const end of ends.splice(0)) end();
    await env.advance(10);
  }
  await Promise.all(asked);
  expect(begun.slice(6)).toEqual(["a6: the connection was closed", "a7"]);
  expect(env.pendingTimers).toBe(0);
});

it("one begins at a time, whoever asks, and leaves others as much time as it took", async () => {
  class OneTurnEachMs extends ManualEnv {
    override timer(delayMs: number, callback: () => void) {
      return super.timer(Math.max(1, delayMs), callback);
    }
  }
  const env = new OneTurnEachMs();
  const turns = new Turns(env);
  let begun = 0;
  const begin = async (): Promise<void> => {
    begun += 1;
  };
  const asked = ["a", "b", "c"].map((id) => turns.run(callOf(id), begin));
  // Each takes a turn, which is a millisecond here.
  for (const begunByNow of [0, 1, 1, 2, 2, 3, 3]) {
    expect(begun).toBe(begunByNow);
    await env.advance(1);
  }
  await Promise.all(asked);
});

it("a place is free when the answer was taken, not when it was made", async () => {
  const env = new ManualEnv();
  const turns = new Turns(env);
  const untaken: (() => void)[] = [];
  let begun = 0;
  const begin = async (): Promise<void> => {
    begun += 1;
  };
  const ask = () =>
    turns.run(
      callOf("a", "there", (taken) => void untaken.push(taken)),
      begin,
    );
  const asked = Array.from({ length: 6 }, ask);
  await env.advance(10);
  expect(begun).toBe(4);
  untaken.shift()?.();
  await env.advance(10);
  expect(begun).toBe(5);
  untaken.shift()?.();
  await env.advance(10);
  expect(begun).toBe(6);
  await Promise.all(asked);
});

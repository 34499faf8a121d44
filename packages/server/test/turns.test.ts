/** What is large begins one a turn for each caller. */
import { ManualEnv } from "solehold/internal";
import { expect, it } from "vitest";
import type { Call } from "../src/access/call.ts";
import { LOCAL_PRINCIPAL } from "../src/access/principal.ts";
import { Turns } from "../src/access/turns.ts";

function callOf(id: string, presence: "there" | "gone" = "there"): Call {
  const isGone = (): boolean => presence === "gone";
  const connection = { isGone, isCancelled: () => false, onGone: () => () => undefined };
  const principal = { ...LOCAL_PRINCIPAL, id };
  return { principal, traceId: "", address: "", receivedMs: 0, waitedMs: 0, connection };
}

it("callers do not wait for each other, and what nobody waits for any more does not begin", async () => {
  const env = new ManualEnv();
  const turns = new Turns(env);
  const begun: string[] = [];
  const ask = (name: string, call: Call): Promise<void> =>
    turns.next(call).then(
      () => void begun.push(name),
      (error: Error) => void begun.push(`${name}: ${error.message}`),
    );
  const asked = [
    ask("a1", callOf("a")),
    ask("a2", callOf("a")),
    ask("a3", callOf("a", "gone")),
    ask("a4", callOf("a")),
    ask("b1", callOf("b")),
  ];
  await Promise.all([asked[0], asked[4]]);
  expect(begun).toEqual(["a1", "b1"]);
  await env.advance(10);
  await Promise.all(asked);
  expect(begun).toEqual(["a1", "b1", "a2", "a3: the connection was closed", "a4"]);
  await env.advance(10);
  expect(env.pendingTimers).toBe(0);
});

/** An acquire through a server whose answers get lost: what may be said of it, and from when on its grant is believed. */

import { StoreError } from "solehold";
import { HttpTransport, ManualEnv, RemoteExecutor, realEnv } from "solehold/internal";
import { expect, it, onTestFinished } from "vitest";
import { testServer } from "../support/server.ts";

const ACQUIRE = {
  op: "acquire",
  key: { tenant: "default", name: "job" },
  holder: "me",
  ttlMs: 60_000,
} as const;

/** `fate` says what becomes of each request: it is done and answered, done without an answer, or refused at the door. */
async function lossyExecutor(env: typeof realEnv, fate: (attempt: number) => "answered" | "lost" | "closed") {
  const { url, server } = await testServer();
  const transport = new HttpTransport({ url: new URL(url), env: realEnv });
  const send = transport.send.bind(transport);
  const sentMs: number[] = [];
  const waitedMs: number[] = [];
  transport.send = async (request) => {
    const becomes = fate(sentMs.push(env.monotonicMs()));
    if (becomes === "closed") throw new StoreError("unreachable", "nobody there", { outcome: "not-applied" });
    const answer = await send(request);
    waitedMs.push((answer.body as { waitedMs?: number }).waitedMs ?? 0);
    if (becomes === "lost") throw new StoreError("timeout", "no answer", { outcome: "unknown" });
    return answer;
  };
  onTestFinished(() => transport.close());
  return { executor: new RemoteExecutor({ transport, env }), server, sentMs, waitedMs };
}

it("an acquire that may have been done stays unknown, although its repeats were certainly not", async () => {
  const fate = (attempt: number) => (attempt === 1 ? "lost" : "closed");
  const { executor, server } = await lossyExecutor(realEnv, fate);
  const outcome = await executor.execute({ ...ACQUIRE, timeoutMs: 300 });
  expect(outcome).toMatchObject({ kind: "unsettled", outcome: "unknown" });
  expect(await server.service.read(ACQUIRE.key)).toMatchObject({ holder: "me", live: true });
});

it("a grant that a repeat found is believed from before that repeat was sent", async () => {
  const env = new ManualEnv();
  const { executor, sentMs, waitedMs } = await lossyExecutor(env, (attempt) =>
    attempt < 3 ? "lost" : "answered",
  );
  let answered = false;
  const asking = executor.execute(ACQUIRE).finally(() => {
    answered = true;
  });
  while (!answered) {
    await env.advance(50);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const outcome = await asking;
  expect(sentMs).toHaveLength(3);
  if (outcome.kind !== "applied") throw new Error("it was granted");
  // The server counts what a request spent in its hands by a real clock, and the belief starts that much later.
  expect(outcome.believedFrom.monotonicMs).toBeLessThanOrEqual((sentMs[2] ?? 0) + (waitedMs[2] ?? 0));
  expect(outcome.believedFrom.monotonicMs).toBeGreaterThan(sentMs[1] ?? 0);
});

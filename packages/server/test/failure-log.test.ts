/** Why the store failed is in the server's log, for whatever edge a request came in by; clients get the kind alone. */
import { StoreError } from "solehold";
import { ManualEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { draining, ProblemError } from "../src/protocol/problem.ts";
import { FailureLog } from "../src/telemetry/failure-log.ts";
import { createLog } from "../src/telemetry/log.ts";
import { testServer } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

interface Line {
  readonly msg: string;
  readonly traceId?: string;
  readonly cause?: string;
  readonly storeError?: string;
  readonly unlogged?: number;
}

const parsed = (lines: readonly string[]): readonly Line[] => lines.map((line) => JSON.parse(line) as Line);

const down = new StoreError("unreachable", "Redis at cache-7:6379: nothing listens there", {
  outcome: "not-applied",
});

describe("a store that fails", () => {
  it("is in the log with its cause and the trace of the request, and the client does not see the message", async () => {
    const { server, lease, logged } = await testServer();
    const { store } = server.service.executor;
    await store.close();
    const answer = await lease("acquire", { name: "job", holder: "me" });
    expect(answer.status).toBe(503);
    const [line] = parsed(logged).filter(({ msg }) => msg === "the store failed");
    expect(line).toMatchObject({ storeError: "closed", cause: expect.stringContaining("was closed") });
    expect(line?.traceId).toBe(answer.body.traceId);
    expect(answer.text).not.toContain(line?.cause);
  });

  it.each(["/v1/leases", "/v1/lease?name=job", "/readyz"])("is in the log when %s meets it", async (path) => {
    const { server, get, logged } = await testServer();
    await server.service.executor.store.close();
    expect((await get(path)).status).toBe(503);
    expect(parsed(logged).filter(({ msg }) => msg === "the store failed")).toHaveLength(1);
  });

  it("is in the log when the stream meets it", async () => {
    const { server, url, logged } = await testServer();
    const stream = await TestStream.open(url);
    await server.service.executor.store.close();
    expect(await stream.ask({ op: "get", name: "job" })).toMatchObject([{ status: 503 }]);
    expect(parsed(logged).filter(({ msg }) => msg === "the store failed")).toHaveLength(1);
  });
});

describe("the log of failures", () => {
  function world() {
    const env = new ManualEnv();
    const lines: string[] = [];
    const log = createLog("info", { write: (line: string) => void lines.push(line) });
    return { env, failures: new FailureLog(env, log), lines: () => parsed(lines) };
  }

  it("has a failure of the store once in ten seconds for each kind, with the number of those between", async () => {
    const { env, failures, lines } = world();
    for (let count = 0; count < 1_000; count += 1) failures.failed(down, "trace");
    failures.failed(new StoreError("timeout", "no answer", { outcome: "unknown" }), "other");
    expect(lines()).toMatchObject([
      { cause: down.message, unlogged: 0, traceId: "trace" },
      { cause: "no answer", unlogged: 0 },
    ]);
    await env.advance(9_999);
    failures.failed(down, "trace");
    expect(lines()).toHaveLength(2);
    await env.advance(1);
    failures.failed(down, "trace");
    expect(lines().slice(2)).toMatchObject([{ cause: down.message, unlogged: 1_000 }]);
  });

  it("has every failure of the server itself, and none that is an answer", () => {
    const { failures, lines } = world();
    failures.failed(new TypeError("a mistake"), "trace");
    failures.failed(new TypeError("a mistake"), "trace");
    failures.failed(new ProblemError(draining()), "trace");
    expect(lines().map(({ msg }) => msg)).toEqual(["a request failed", "a request failed"]);
  });
});

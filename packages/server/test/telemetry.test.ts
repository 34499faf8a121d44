import { ROOT_CONTEXT, type Span, type SpanContext, type Tracer, trace } from "@opentelemetry/api";
import { MemoryStore } from "solehold";
import { decorateStore, ManualEnv, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { measuredStore } from "../src/telemetry/instrumented.ts";
import { Metrics, type Readings } from "../src/telemetry/metrics.ts";
import { type Body, type TestServer, testServer, until } from "./support/server.ts";
import { TestStream } from "./support/stream.ts";

const NO_READINGS: Readings = {
  waiters: () => 0,
  watchers: () => 0,
  streams: () => 0,
  liveLeases: () => 0,
  auditLag: () => 0,
  auditDropped: () => 0,
  auditUnshipped: () => 0,
  clockJumps: () => 0,
};

/** The value of a series in the text format; 0 when it is not there. */
function value(text: string, series: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}

async function exercise({ lease, url, server }: TestServer): Promise<void> {
  const owner = { name: "n/1", holder: "h", token: "very-secret-token" };
  await lease("acquire", { ...owner, ttlMs: 150 });
  await lease("renew", { ...owner, ttlMs: 150 });
  await lease("acquire", { name: "n/1", holder: "other" });
  await lease("renew", { ...owner, token: "guessed-token" });
  await lease("acquire", { name: "n/1", holder: "heir", token: "another-secret-token", waitMs: 5_000 });
  const stream = await TestStream.open(url);
  await stream.ask({ op: "acquire", name: "n/2", holder: "h", token: "third-secret-token" });
  await until(
    "the expiry is known",
    async () => (await server.service.audit.query({ action: "expire" })).length === 1,
  );
}

describe("metrics", () => {
  it("agree with the audit", async () => {
    const server = await testServer();
    await exercise(server);
    const { text } = await server.get("/metrics");
    const entries = await server.server.service.audit.query({ limit: 10_000 });
    const counted = new Map<string, number>();
    for (const { action, allowed, reason } of entries) {
      const series = `solehold_decisions_total{action="${action}",allowed="${allowed}",reason="${reason}"}`;
      counted.set(series, (counted.get(series) ?? 0) + 1);
    }
    expect(counted.size).toBeGreaterThan(4);
    for (const [series, count] of counted) expect([series, value(text, series)]).toEqual([series, count]);
    const grants = entries.filter(({ action, allowed }) => action === "grant" && allowed).length;
    expect(value(text, "solehold_grants_total")).toBe(grants);
  });

  it("count takeovers, expiries, denials, live leases, waiting, renewals and store calls", async () => {
    const server = await testServer();
    await exercise(server);
    const { text, headers } = await server.get("/metrics");
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(value(text, "solehold_takeovers_total")).toBe(1);
    expect(value(text, "solehold_expiries_total")).toBe(1);
    expect(value(text, 'solehold_denials_total{reason="LEASE_TOKEN_INVALID"}')).toBe(1);
    expect(value(text, "solehold_live_leases")).toBeGreaterThanOrEqual(2);
    expect(value(text, "solehold_streams")).toBe(1);
    expect(value(text, "solehold_waiters")).toBe(0);
    expect(value(text, 'solehold_wait_seconds_count{end="applied"}')).toBe(1);
    expect(value(text, "solehold_renewal_age_ratio_count")).toBe(1);
    expect(value(text, 'solehold_store_seconds_count{call="apply",result="ok"}')).toBeGreaterThan(2);
    expect(value(text, 'solehold_requests_total{route="POST /v1/leases/acquire",status="409"}')).toBe(1);
    expect(value(text, 'solehold_requests_total{route="stream acquire",status="200"}')).toBe(1);
    expect(text).toMatch(/solehold_event_loop_busy_ratio \d/);
  });

  it("of latency leave out the time in a wait queue, over HTTP and the stream", async () => {
    const env = new ManualEnv();
    const server = await testServer({}, { env });
    const stream = await TestStream.open(server.url);
    await server.lease("acquire", { name: "a", holder: "h", token: "t", ttlMs: 600_000 });
    const wait = { name: "a", holder: "w", token: "u", ttlMs: 600_000, waitMs: 300_000 };
    const granted = server.lease("acquire", wait);
    await until("it waits", () => server.server.queue.size === 1);
    const [refused] = stream.post({ op: "acquire", ...wait, holder: "x", waitMs: 60_000 });
    await until("both wait", () => server.server.queue.size === 2);
    await env.advance(60_000);
    expect((await stream.answer(refused)).status).toBe(409);
    await server.lease("release", { name: "a", holder: "h", token: "t" });
    expect((await granted).status).toBe(200);
    const { text } = await server.get("/metrics");
    for (const route of ["POST /v1/leases/acquire", "stream acquire"]) {
      expect(value(text, `solehold_request_seconds_count{route="${route}"}`)).toBeGreaterThan(0);
      expect(value(text, `solehold_request_seconds_sum{route="${route}"}`)).toBeLessThan(1);
    }
    expect(value(text, 'solehold_wait_seconds_sum{end="applied"}')).toBeGreaterThan(50);
  });

  it("have labels that say nothing about tenants, names, holders or secrets, and stay few", async () => {
    const server = await testServer();
    for (let index = 0; index < 30; index += 1) {
      await server.lease("acquire", {
        tenant: `tenant-${index}`,
        name: `name-${index}`,
        holder: `holder-${index}`,
      });
      await server.get(`/path-${index}`);
    }
    const { text } = await server.get("/metrics");
    expect(text).not.toMatch(/tenant-|name-|holder-|path-/);
  });

  it("are taken of a store without losing anything that it can do", () => {
    const store = new MemoryStore();
    const measured = measuredStore(store, new Metrics(), realEnv);
    expect(Object.keys(measured).sort()).toEqual(Object.keys(decorateStore(store, {})).sort());
    const { list: _list, ...unlistable } = measured;
    expect(measuredStore(unlistable, new Metrics(), realEnv).list).toBeUndefined();
  });

  it("are read at each scrape where something else keeps them", async () => {
    const metrics = new Metrics();
    let now = 1;
    const read = (): number => now;
    metrics.observe({ ...NO_READINGS, waiters: read, auditDropped: read });
    expect(value(await metrics.text(), "solehold_waiters")).toBe(1);
    now = 3;
    const text = await metrics.text();
    expect(value(text, "solehold_waiters")).toBe(3);
    expect(value(text, "solehold_audit_dropped_total")).toBe(3);
  });
});

describe("logs", () => {
  it("tell of every answer by route, status, reason and trace, and never of a secret", async () => {
    const server = await testServer();
    await exercise(server);
    const lines: readonly Body[] = server.logged.map((line) => JSON.parse(line));
    const answered = lines.filter(({ msg }) => msg === "answered");
    expect(answered[0]).toMatchObject({ route: "POST /v1/leases/acquire", status: 200, by: "local" });
    expect(answered.some(({ reason }) => reason === "LEASE_TOKEN_INVALID")).toBe(true);
    const everything = [
      server.logged.join(""),
      (await server.get("/metrics")).text,
      (await server.get("/v1/leases")).text,
      (await server.get("/v1/lease?name=n/1")).text,
      (await server.get("/v1/queue?name=n/1")).text,
      (await server.get("/v1/audit?limit=1000")).text,
    ].join("\n");
    expect(everything).not.toMatch(/secret-token|guessed-token/);
  });

  it("do not repeat a token that stands in the wrong field", async () => {
    const server = await testServer();
    const secret = "misplaced-secret";
    const answers = [
      await server.lease("acquire", { name: "a", holder: "h", ttlMs: secret }),
      await server.lease("acquire", { name: "a", holder: "h", purpose: secret }),
      await server.lease("acquire", { name: "a", holder: "h", term: secret }),
      await server.get(`/v1/leases?limit=${secret}`),
      await server.get(`/v1/leases?state=${secret}`),
    ];
    for (const { status, text } of answers) {
      expect(status).toBe(400);
      expect(text).not.toContain(secret);
    }
    expect(server.logged.join("")).not.toContain(secret);
  });
});

describe("spans", () => {
  it("continue the caller's trace through the OpenTelemetry API", async () => {
    const started: { name: string; parent: SpanContext | undefined; ended: number }[] = [];
    const tracer = {
      startSpan: (name: string, _options: unknown, context = ROOT_CONTEXT): Span => {
        const parent = trace.getSpanContext(context);
        const record = { name, parent, ended: 0 };
        started.push(record);
        const traceId = parent?.traceId ?? "1".repeat(32);
        const span = { ...trace.wrapSpanContext({ traceId, spanId: "f".repeat(16), traceFlags: 1 }) };
        return Object.assign(span, {
          spanContext: () => ({ traceId, spanId: "f".repeat(16), traceFlags: 1 }),
          setAttribute: (_key: string, status: number) => {
            record.ended = status;
            return span;
          },
          setStatus: () => span,
          end: () => undefined,
        }) as unknown as Span;
      },
    } as unknown as Tracer;
    trace.setGlobalTracerProvider({ getTracer: () => tracer });
    onTestFinished(() => trace.disable());
    const server = await testServer();
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const answer = await server.get("/v1/lease?name=x", { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    expect(answer.headers.get("traceparent")).toBe(`00-${traceId}-${"f".repeat(16)}-01`);
    await until("the span has ended", () => started.some(({ ended }) => ended === 404));
    expect(started.find(({ ended }) => ended === 404)).toMatchObject({
      name: "GET /v1/lease",
      parent: { traceId, spanId: "b7ad6b7169203331", isRemote: true },
    });
  });
});

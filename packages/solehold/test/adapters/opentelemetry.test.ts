/** The OpenTelemetry bridge with the SDK itself: the spans and metrics that arrive have the names that the docs propose. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type MeterProvider as ApiMeterProvider, metrics, SpanStatusCode, trace } from "@opentelemetry/api";
import { afterAll, beforeAll, expect, it } from "vitest";
import { instrumentLeases } from "../../src/client/opentelemetry.ts";
import { clientWorld, freeze } from "../client/helpers.ts";
import {
  AggregationTemporality,
  BasicTracerProvider,
  InMemoryMetricExporter,
  InMemorySpanExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  SimpleSpanProcessor,
} from "./packages/opentelemetry.ts";

const spans = new InMemorySpanExporter();
const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
const meters = new MeterProvider({ readers: [reader] });
let stop: () => void = () => undefined;

beforeAll(() => {
  // As a program does it: the bridge finds both through the API.
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  );
  // The types of the SDK are those of an API before ours.
  metrics.setGlobalMeterProvider(meters as unknown as ApiMeterProvider);
  stop = instrumentLeases();
});

afterAll(async () => {
  stop();
  await meters.shutdown();
  trace.disable();
  metrics.disable();
});

/** The section's names in code, such as `solehold.acquire`, but not the entry point of the package. */
function documented(): string[] {
  const page = readFileSync(join(import.meta.dirname, "../../../../docs/using-leases.md"), "utf8");
  const section = page.split("## OpenTelemetry")[1] ?? "";
  return [...new Set([...section.matchAll(/`(solehold\.[\w.]+)`/g)].map(([, name = ""]) => name))].sort();
}

it("exports a lease's life as the spans and metrics that the page names, and no others", async () => {
  const { env, leases, other, store } = clientWorld();
  const rival = other("rival");
  const lease = await leases.acquire("job", { ttl: "30s" });
  await rival.tryAcquire("job");
  await env.advance(15_000);
  await lease.release();
  const lost = await leases.acquire("frozen", { ttl: "30s" });
  void lost.signal;
  freeze(store);
  await env.advance(60_000);
  expect(lost.state).toBe("lost");

  const ended = spans.getFinishedSpans();
  const of = (name: string) => ended.filter((span) => span.name === name);
  expect(of("solehold.acquire").map(({ attributes }) => attributes["solehold.outcome"])).toEqual([
    "granted",
    "LEASE_HELD",
    "granted",
  ]);
  expect(of("solehold.acquire").map(({ status }) => status.code)).not.toContain(SpanStatusCode.ERROR);
  const [held, frozen] = of("solehold.hold");
  expect(held?.attributes).toEqual({
    ...{ "solehold.tenant": "default", "solehold.lease": "job", "solehold.holder": "me" },
    ...{ "solehold.fence": "1", "solehold.slot": 0, "solehold.end": "released" },
  });
  expect(held?.events.map(({ name }) => name)).toEqual(["renewed"]);
  expect(frozen?.attributes["solehold.end"]).toBe("unreachable");
  expect(frozen?.events.map(({ name }) => name)).toContain("jeopardy");
  expect(frozen?.status.code).toBe(SpanStatusCode.ERROR);

  const seen = await measured();
  expect(seen.get("solehold.acquires")).toEqual([
    [{ "solehold.outcome": "granted" }, 2],
    [{ "solehold.outcome": "LEASE_HELD" }, 1],
  ]);
  expect(seen.get("solehold.leases.held")).toEqual([[{}, 0]]);
  expect(seen.get("solehold.leases.lost")).toEqual([[{ "solehold.reason": "unreachable" }, 1]]);
  expect(seen.get("solehold.hold.duration")?.map(([attributes]) => attributes)).toEqual([
    { "solehold.end": "released" },
    { "solehold.end": "unreachable" },
  ]);

  const names = [
    ...ended.flatMap((span) => [span.name, ...Object.keys(span.attributes)]),
    ...[...seen].flatMap(([name, points]) => [
      name,
      ...points.flatMap(([attributes]) => Object.keys(attributes)),
    ]),
  ];
  expect([...new Set(names)].sort()).toEqual(documented());
});

/** What the SDK exports, by name: the attributes and the value of each series. */
async function measured(): Promise<Map<string, (readonly [object, unknown])[]>> {
  await reader.forceFlush();
  const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
  return new Map(
    scopes.flatMap(({ metrics: all }) =>
      all.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        dataPoints.map(({ attributes, value }) => [attributes, value] as const),
      ]),
    ),
  );
}

/** What a process can watch of its leases: events on channels, spans and metrics, and lines on standard error. */
import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { join } from "node:path";
import type { Attributes, Meter, Span, Tracer } from "@opentelemetry/api";
import { describe, expect, it, onTestFinished } from "vitest";
import { LEASE_EVENTS } from "../../src/client/diagnostics.ts";
import type { Lease } from "../../src/client/lease.ts";
import { instrumentLeases } from "../../src/client/opentelemetry.ts";
import { runUntilSettled } from "../executor/helpers.ts";
import { clientWorld, freeze, thaw } from "./helpers.ts";

type Event = { readonly name: string; readonly [field: string]: unknown };

/** All events from now on, by their public channels. */
function watched(): Event[] {
  const events: Event[] = [];
  for (const name of LEASE_EVENTS) {
    const listener = (message: unknown): void => void events.push({ name, ...(message as object) });
    subscribe(`solehold:${name}`, listener);
    onTestFinished(() => void unsubscribe(`solehold:${name}`, listener));
  }
  return events;
}

const names = (events: readonly Event[]): readonly string[] => events.map(({ name }) => name);

describe("the events of a lease", () => {
  it("tell of its way from the attempt to the release, with how long each took", async () => {
    const { leases, env } = clientWorld();
    const events = watched();
    const lease = await leases.acquire("job", { ttl: "30s", wait: "5s" });
    await env.advance(12_000);
    await lease.release();
    expect(names(events)).toEqual(["attempt", "granted", "renewed", "released"]);
    const key = { tenant: "default", name: "job" };
    const attempt = events[0]?.attempt;
    expect(events[0]).toEqual({ name: "attempt", attempt, key, holder: "me", waitMs: 5_000 });
    expect(events[1]).toEqual({ name: "granted", attempt, key, holder: "me", lease, durationMs: 0 });
    expect(events[2]).toMatchObject({ lease, durationMs: 0 });
    expect(events[2]?.remainingMs).toBeGreaterThan(29_000);
    expect(events[3]).toMatchObject({ lease, heldMs: 12_000, result: { released: true } });
  });

  it("tell what is waited for, and why an attempt got nothing", async () => {
    const { leases, other, env } = clientWorld();
    await other("them").acquire("job", { ttl: "1h" });
    const events = watched();
    const waiting = leases.acquire("job", { wait: "2s" });
    const failed = expect(waiting).rejects.toThrow("waited 2000 ms");
    await env.advance(2_500);
    await failed;
    expect(new Set(names(events))).toEqual(new Set(["attempt", "waiting", "refused"]));
    expect(events[1]).toMatchObject({ for: { holder: "them", position: 0 } });
    expect(events.at(-1)).toMatchObject({ durationMs: 2_000, error: { code: "LEASE_TIMEOUT" } });
    expect(await leases.tryAcquire("job")).toMatchObject({ ok: false });
    expect(events.at(-1)).toMatchObject({ name: "refused", error: { code: "LEASE_HELD" } });
  });

  it("tell of jeopardy and of the loss, once, and of no release after it", async () => {
    const { leases, store, env } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "10s" });
    const events = watched();
    freeze(store);
    await env.advance(10_000);
    thaw(store);
    await runUntilSettled(env, lease.release());
    expect(names(events)).toEqual(["jeopardy", "lost"]);
    expect(events[1]).toMatchObject({ lease, reason: "unreachable" });
    expect(events[1]?.heldMs).toBeGreaterThan(9_000);
  });

  it("include leases that are adopted, and the end of those that are handed over", async () => {
    const { leases, other } = clientWorld();
    const events = watched();
    const secret = (await leases.acquire("job")).transfer();
    const adopted = await other("heir").adopt(secret);
    await adopted.handOff("next", { withinMs: 1_000 });
    expect(names(events)).toEqual(["attempt", "granted", "released", "granted", "released"]);
    expect(events[3]).toMatchObject({ attempt: null, lease: adopted });
  });

  it("never carry the token in what can be printed", async () => {
    const { leases } = clientWorld();
    const events = watched();
    const lease = await leases.acquire("job");
    await lease.release();
    expect(events).toHaveLength(3);
    expect(JSON.stringify(events)).not.toContain(lease.token);
  });
});

/** As much of OpenTelemetry's API as the bridge uses, written down. */
function recorder(): { tracer: Tracer; meter: Meter; log: string[] } {
  const log: string[] = [];
  const written = (attributes: Attributes = {}): string =>
    Object.entries(attributes)
      .map(([name, value]) => ` ${name.replace("solehold.", "")}=${value}`)
      .join("");
  const startSpan = (name: string, { attributes }: { attributes?: Attributes } = {}): Span => {
    let all: Attributes = { ...attributes };
    const events: string[] = [];
    const span = {
      setAttribute: (field: string, value: string) => span.setAttributes({ [field]: value }),
      setAttributes: (more: Attributes) => {
        all = { ...all, ...more };
        return span;
      },
      addEvent: (event: string) => {
        events.push(event);
        return span;
      },
      setStatus: ({ code }: { code: number }) => span.setAttributes({ status: code }),
      end: () => void log.push(`span ${name}${written(all)}${events.map((event) => ` +${event}`).join("")}`),
    };
    return span as unknown as Span;
  };
  const instrument = (name: string) => ({
    add: (value: number, attributes?: Attributes) => void log.push(`${name} ${value}${written(attributes)}`),
    record: (value: number, attributes?: Attributes) =>
      void log.push(`${name} ${value}${written(attributes)}`),
  });
  const meter = { createCounter: instrument, createUpDownCounter: instrument, createHistogram: instrument };
  return { tracer: { startSpan } as unknown as Tracer, meter: meter as unknown as Meter, log };
}

describe("the bridge to OpenTelemetry", () => {
  it("makes a span of the attempt and one of the hold, and measures both", async () => {
    const { leases, env } = clientWorld();
    const { log, ...options } = recorder();
    const stop = instrumentLeases(options);
    const lease = await leases.acquire("job", { ttl: "30s" });
    await env.advance(12_000);
    await lease.release();
    stop();
    await (await leases.acquire("job")).release();
    expect(log).toEqual([
      "solehold.acquires 1 outcome=granted",
      "solehold.acquire.duration 0 outcome=granted",
      "span solehold.acquire tenant=default lease=job holder=me outcome=granted fence=1 slot=0",
      "solehold.leases.held 1",
      "solehold.renewal.duration 0",
      "solehold.leases.held -1",
      "solehold.hold.duration 12 end=released",
      "span solehold.hold tenant=default lease=job holder=me fence=1 slot=0 end=released +renewed",
    ]);
  });

  it("takes a lease that another has for an answer, and a loss for an error", async () => {
    const { leases, other, store, env } = clientWorld();
    const { log, ...options } = recorder();
    await other("them").acquire("taken", { ttl: "1h" });
    const stop = instrumentLeases(options);
    onTestFinished(stop);
    await leases.tryAcquire("taken");
    expect(log.at(-1)).toBe("span solehold.acquire tenant=default lease=taken holder=me outcome=LEASE_HELD");
    const lease: Lease = await leases.acquire("job", { ttl: "10s" });
    freeze(store);
    await env.advance(10_000);
    expect(lease.isHeld()).toBe(false);
    expect(log.slice(-5)).toEqual([
      "solehold.leases.jeopardy 1",
      "solehold.leases.lost 1 reason=unreachable",
      "solehold.leases.held -1",
      expect.stringMatching(/^solehold.hold.duration 9\.\d+ end=unreachable$/),
      expect.stringMatching(/^span solehold.hold .* status=2 end=unreachable .*\+jeopardy$/),
    ]);
  });
});

describe("SOLEHOLD_DEBUG", () => {
  const script = `
    import { connect } from "solehold";
    const leases = await connect("memory:", { holder: "me" });
    const lease = await leases.acquire("job", { wait: "1s" });
    await leases.tryAcquire("job");
    await lease.release();
    await leases.close();
    console.log(lease.token);
  `;
  const run = (debug: string): { readonly lines: readonly string[]; readonly token: string } => {
    const shell = `"${process.execPath}" --input-type=module -e '${script}' 2>&1`;
    const options = { cwd: join(import.meta.dirname), env: { ...process.env, SOLEHOLD_DEBUG: debug } };
    const lines = execFileSync("sh", ["-c", shell], { ...options, encoding: "utf8" })
      .trim()
      .split("\n");
    return { lines: lines.slice(0, -1), token: lines.at(-1) ?? "" };
  };

  it("writes a line for each event to standard error, and no token", () => {
    const { lines, token } = run("1");
    expect(lines.map((line) => line.replaceAll(/\d+ ms/g, "N ms").replace(/fence \d+/, "fence F"))).toEqual([
      "solehold: job: me asks, and waits N ms at most",
      "solehold: job: fence F granted to me after N ms",
      "solehold: job: me asks, and waits N ms at most",
      expect.stringMatching(/^solehold: job: me has no lease after N ms: default\/job is held by me/),
      "solehold: job: fence F released in N ms, held for N ms",
    ]);
    expect(lines.join("\n")).not.toContain(token);
  });

  it("is silent when it is not set, or 0", () => {
    expect([run("").lines, run("0").lines]).toEqual([[], []]);
  });
});

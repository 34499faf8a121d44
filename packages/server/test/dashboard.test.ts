/** What the dashboard is made of on the server's side: its files, the scope of a key, activity, and events of queues and decisions. */
import { ManualEnv, type SseEvent, SseParser } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { findingsOf } from "../src/http/routes/server-findings.ts";
import { bearer, keyedServer } from "./support/keys.ts";
import { type Body, type TestServer, testServer, until } from "./support/server.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml" };

/** The events of a stream so far. */
async function follow(url: string, headers: Record<string, string> = {}): Promise<SseEvent[]> {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const seen: SseEvent[] = [];
  const parser = new SseParser((event) => void seen.push(event));
  const { body } = await fetch(url, { headers, signal: abort.signal });
  const decoder = new TextDecoder();
  const read = async (): Promise<void> => {
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>)
      parser.push(decoder.decode(chunk, { stream: true }));
  };
  read().catch(() => undefined);
  await until("the stream begins", () => seen.length > 0);
  return seen;
}

const dataOf = (events: readonly SseEvent[], kind: string): Body[] =>
  events.filter(({ event }) => event === kind).map(({ data }) => JSON.parse(data));

function waiting({ lease }: TestServer, holder: string): Promise<unknown> {
  return lease("acquire", { name: "job", holder, ttlMs: 60_000, waitMs: 30_000 });
}

describe("the dashboard's files", () => {
  it("are a page of this origin alone, for a browser that asks for the root", async () => {
    const { get, url } = await testServer();
    const page = await get("/", BROWSER);
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.headers.get("cache-control")).toBe("no-store");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    const assets = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, path = ""]) => new URL(path, url),
    );
    expect(assets.length).toBeGreaterThan(0);
    for (const asset of assets) {
      if (asset.protocol === "data:") continue;
      expect(asset.origin).toBe(new URL(url).origin);
      const { status, headers } = await get(asset.pathname);
      expect([asset.pathname, status, headers.get("cache-control")]).toEqual([
        asset.pathname,
        200,
        "public, max-age=31536000, immutable",
      ]);
    }
    expect((await get("/playground", BROWSER)).status).toBe(200);
    expect((await get("/assets/..%2fpackage.json", BROWSER)).status).toBe(404);
  });

  it("need no API key, while every answer about leases does", async () => {
    const { get } = await keyedServer([{}]);
    expect((await get("/", BROWSER)).status).toBe(200);
    for (const path of ["/v1/whoami", "/v1/server", "/v1/activity", "/v1/audit/watch"])
      expect([path, (await get(path, BROWSER)).status]).toEqual([path, 401]);
  });
});

describe("what the dashboard asks for", () => {
  it("is the scope of its key, and no more than that scope", async () => {
    const server = await keyedServer([{ tenants: ["mine"], prefixes: ["a/"], actions: ["read"] }, {}]);
    const [mine, all] = server.keys.map(bearer);
    const { body } = await server.get("/v1/whoami", mine);
    expect(body).toMatchObject({
      keysRequired: true,
      tenants: ["mine"],
      prefixes: ["a/"],
      actions: ["read"],
    });
    for (const path of ["/v1/server", "/v1/activity", "/v1/audit/watch"])
      expect([path, (await server.get(path, mine)).status]).toEqual([path, 403]);
    expect((await server.get("/v1/whoami", all)).body.tenants).toBe(null);
  });

  it("is how many wait, first as it is, then as it changes", async () => {
    const server = await testServer();
    await server.lease("acquire", { name: "job", holder: "a", token: "t", ttlMs: 60_000 });
    const first = waiting(server, "b");
    await until("b waits", async () => (await server.get("/v1/queue?name=job")).body.waiting === 1);
    const events = await follow(`${server.url}/v1/watch?queues=true`);
    const lengths = (): readonly unknown[] => dataOf(events, "queue");
    await until("b is seen", () => lengths().length === 1);
    const second = waiting(server, "c");
    await until("c is seen", () => lengths().length === 2);
    await server.lease("release", { name: "job", holder: "a", token: "t" });
    await first;
    await until("b is served", () => lengths().length === 3);
    expect(lengths()).toEqual([1, 2, 1].map((count) => ({ tenant: "default", name: "job", waiting: count })));
    const plain = await follow(`${server.url}/v1/watch`);
    await server.lease("revoke", { name: "job" });
    await until("the revocation is seen", () => dataOf(plain, "changed").length > 0);
    expect(dataOf(plain, "queue")).toEqual([]);
    await server.server.close();
    await second;
  });

  it("is every decision as it is made, of the leases and kinds asked for", async () => {
    const server = await testServer();
    const events = await follow(`${server.url}/v1/audit/watch?name=job&except=renew`);
    const owner = { name: "job", holder: "a", token: "t" };
    await server.lease("acquire", owner);
    await server.lease("acquire", { name: "other", holder: "a" });
    await server.lease("renew", owner);
    await server.lease("acquire", { name: "job", holder: "b" });
    await until("the denial is seen", () => dataOf(events, "decided").length === 2);
    expect(dataOf(events, "decided")).toMatchObject([
      { key: "job", action: "grant", allowed: true, holder: "a" },
      { key: "job", action: "grant", allowed: false, holder: "b", detail: { heldBy: "a" } },
    ]);
  });

  it("is the audit by reason, by verdict and by time", async () => {
    const { lease, get } = await testServer();
    const owner = { name: "job", holder: "a", token: "t" };
    await lease("acquire", owner);
    await lease("renew", owner);
    await lease("acquire", { name: "job", holder: "b" });
    const of = async (query: string): Promise<readonly string[]> =>
      (await get(`/v1/audit?${query}`)).body.entries.map(({ action, holder }: Body) => `${action} ${holder}`);
    expect(await of("allowed=false")).toEqual(["grant b"]);
    expect(await of("reason=LEASE_HELD_BY_OTHER")).toEqual(["grant b"]);
    expect(await of("except=renew,use")).toEqual(["grant a", "grant b"]);
    expect(await of("untilMs=1")).toEqual([]);
    const { entries } = (await get("/v1/audit")).body;
    expect(await of(`fromMs=${entries[0].at}`)).toEqual(["grant a", "renew a", "grant b"]);
    expect(await of(`fromMs=${entries[2].at + 1}`)).toEqual([]);
    expect((await get("/v1/audit?allowed=perhaps")).body.field).toBe("allowed");
  });

  it("is what was granted, denied and renewed, in buckets of a few seconds", async () => {
    const env = new ManualEnv();
    const { lease, get } = await testServer({}, { env });
    const owner = { name: "job", holder: "a", token: "t", ttlMs: 60_000 };
    await lease("acquire", owner);
    await lease("acquire", { name: "job", holder: "b" });
    await env.advance(3_000);
    await lease("renew", owner);
    await env.advance(2_000);
    await env.advance(5_000);
    const { buckets } = (await get("/v1/activity")).body;
    expect(buckets).toMatchObject([
      { grants: 1, renewals: 1, renewalAge: 0.05, renewalAgeMost: 0.05, denials: { LEASE_HELD_BY_OTHER: 1 } },
      { grants: 0, renewals: 0, renewalAge: null, denials: {}, waiters: 0 },
    ]);
    expect((await get(`/v1/activity?afterMs=${buckets[0].atMs}`)).body.buckets).toEqual([buckets[1]]);
  });
});

describe("findings about a server", () => {
  const facts = {
    version: "1",
    startedMs: 0,
    keysRequired: true,
    store: {
      ...{ name: "embedded", durable: true, clock: "exact", clockGranularityMs: 1, clockSkewMs: 0 },
      ...{ watch: true, list: true, conditionalDelete: true, maxBatch: 1, clockJumps: 0 },
    },
    policy: { defaultTtlMs: 1, minTtlMs: 1, maxTtlMs: 1, graceMs: 0 },
    audit: { durability: "before-reply", entries: 0, lag: 0, dropped: 0 },
    counts: { liveLeases: 0, waiters: 0, watchers: 0, streams: 0 },
  };
  const warned = (changed: object, obstacle: string | null = null): readonly string[] =>
    findingsOf({ ...facts, ...changed }, obstacle)
      .filter(({ status }) => status === "warn")
      .map(({ id }) => id);

  it("warn of each thing that an operator can change, and of nothing else", () => {
    expect(warned({})).toEqual([]);
    expect(warned({ store: { ...facts.store, durable: false } })).toEqual(["durability"]);
    expect(warned({ store: { ...facts.store, watch: false } })).toEqual(["notifications"]);
    expect(warned({ store: { ...facts.store, clockJumps: 2 } })).toEqual(["clock"]);
    expect(warned({ audit: { ...facts.audit, dropped: 3 } })).toEqual(["audit"]);
    expect(warned({ audit: { ...facts.audit, durability: "memory" } })).toEqual(["audit"]);
    expect(warned({ keysRequired: false }, "no deletes")).toEqual(["collection", "access"]);
  });
});

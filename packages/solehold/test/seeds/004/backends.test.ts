/** Document 004: its backends, from the class of a failure to conditions over HTTP, and the lifecycle around the lease. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  ManualEnv,
  MemoryStore,
  openStore,
  type WriterAuditEvent,
  WriterInstance,
  WriterLeaseStore,
} from "../../../src/facades/seeds.ts";
import { FencedObjectWriter } from "../../../src/guards/index.ts";
import { StoreError } from "../../../src/store/index.ts";
import { openObjects } from "../../../src/stores/object/index.ts";
import { clientWorld } from "../../client/helpers.ts";
import { FaultyStore } from "../../executor/faulty-store.ts";
import { FakeServer } from "../../stores/object/fake-server.ts";

async function fakeServer(): Promise<{ readonly server: FakeServer; readonly url: string }> {
  const server = new FakeServer();
  const url = await server.start();
  onTestFinished(() => server.stop());
  return { server, url };
}

function failing(kind: StoreError["kind"]): WriterLeaseStore {
  const store = new FaultyStore(new MemoryStore({ env: new ManualEnv() }));
  store.apply = () => Promise.reject(new StoreError(kind, `it is ${kind}`, { outcome: "not-applied" }));
  return new WriterLeaseStore({ store });
}

describe("004: BackendError", () => {
  it.each([
    ["Transport", "unreachable"],
    ["Transport", "timeout"],
    ["Auth", "auth"],
    ["PreconditionFailed", "conflict"],
    ["Config", "config"],
    ["Internal", "internal"],
  ] as const)("%s: a store that fails with %s", async (backend, kind) => {
    await expect(failing(kind).tryAcquire("main", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "Backend", backend },
      message: expect.stringContaining(`it is ${kind}`),
    });
  });

  it("NotFound: an object that is not there is no error but null, and a place that is not there refuses to open", async () => {
    const { server, url } = await fakeServer();
    const store = await openStore(url);
    onTestFinished(() => store.close());
    expect(await new WriterLeaseStore({ store }).current("main")).toBeNull();
    server.manners.refuse = () => ({ status: 404, code: "NoSuchBucket" });
    await expect(openStore(url)).rejects.toBeInstanceOf(StoreError);
  });

  it.each([401, 403])("status %i is Auth", async (status) => {
    const { server, url } = await fakeServer();
    const store = await openStore(url);
    onTestFinished(() => store.close());
    server.manners.refuse = () => ({ status, code: "AccessDenied" });
    await expect(
      new WriterLeaseStore({ store }).tryAcquire("main", "writer-a", 60_000),
    ).rejects.toMatchObject({
      failure: { kind: "Backend", backend: "Auth" },
    });
  });

  it.each([404, 409, 412])(
    "status %i to a write is a failed precondition: Held by whoever stands there",
    async (status) => {
      const { server, url } = await fakeServer();
      const store = await openStore(url);
      onTestFinished(() => store.close());
      const rival = new WriterLeaseStore({ store: await openStore(url) });
      server.manners.refuse = ({ method }) => {
        if (method !== "PUT") return null;
        server.manners.refuse = null;
        server.objects.set("/store/leases/main.lease.json", Buffer.from(foreign));
        return { status, code: "" };
      };
      const now = Date.now();
      const foreign = JSON.stringify({
        database_key: "main",
        holder_id: "rival",
        term: 1,
        generation: 1,
        acquired_at_ms: now,
        expires_at_ms: now + 600_000,
      });
      await expect(
        new WriterLeaseStore({ store }).tryAcquire("main", "writer-a", 60_000),
      ).rejects.toMatchObject({
        failure: { kind: "Held", current: { holderId: "rival" } },
      });
      expect(await rival.current("main")).toMatchObject({ holderId: "rival" });
    },
  );
});

describe("004: the atomicity contract", () => {
  it("lease_atomic_http_opt_in: a plain http: URL is no writer's store; http+etag: is, and is probed first", async () => {
    const { server, url } = await fakeServer();
    await expect(openStore(url.replace("http+etag:", "http:"))).rejects.toThrow();
    server.manners.ifNoneMatch = "ignored";
    await expect(openStore(url)).rejects.toThrow(/If-None-Match/i);
    server.manners.ifNoneMatch = "kept";
    await (await openStore(url)).close();
  });

  it("IfAbsent, IfVersion and the conditional delete are sent as If-None-Match and If-Match", async () => {
    const { server, url } = await fakeServer();
    const store = await openStore(url);
    onTestFinished(() => store.close());
    const leases = new WriterLeaseStore({ store });
    server.requests.length = 0;
    const lease = await leases.tryAcquire("main", "writer-a", 60_000);
    await leases.release(await leases.refresh(lease, 60_000));
    const conditions = server.requests
      .filter(({ method }) => method === "PUT" || method === "DELETE")
      .map(
        ({ method, headers }) =>
          `${method} ${headers["if-none-match"] ?? (headers["if-match"] && "version")}`,
      );
    expect(conditions).toEqual(["PUT *", "PUT version", "DELETE version"]);
  });

  it("with_prefix: the default is leases/, and a missing slash is added, on files too", async () => {
    const folder = mkdtempSync(join(tmpdir(), "solehold-seed-004-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const [prefix, path] of [
      [undefined, "leases/main.lease.json"],
      ["own", "own/main.lease.json"],
      ["slashed/", "slashed/main.lease.json"],
    ] as const) {
      const store = await openStore(`file:${folder}`, prefix === undefined ? {} : { prefix });
      await new WriterLeaseStore({ store }).tryAcquire("main", "writer-a", 60_000);
      expect(existsSync(join(folder, path))).toBe(true);
      await store.close();
    }
  });

  it("refresh_for_term with a term behind is Fenced without asking the backend", async () => {
    const env = new ManualEnv();
    const store = new FaultyStore(new MemoryStore({ env }));
    const leases = new WriterLeaseStore({ store, env });
    const lease = await leases.tryAcquireForTerm("main", "writer-a", 60_000, 4n);
    const before = { ...store.calls };
    await expect(leases.refreshForTerm(lease, 60_000, 5n)).rejects.toMatchObject({
      failure: { kind: "Fenced", attemptedTerm: 4n, currentTerm: 5n },
    });
    expect({ ...store.calls }).toEqual(before);
  });
});

describe("004: the lifecycle", () => {
  function instance() {
    const world = clientWorld({ holder: "instance-a" });
    const audit: WriterAuditEvent[] = [];
    const writer = new WriterInstance({
      ...{ leases: world.leases, databaseKey: "main", lease: "required" as const, ttl: 9_000 },
      onDrain: () => undefined,
      onAudit: (event) => audit.push(event),
    });
    return { ...world, audit, writer };
  }

  it("refreshes every third of the ttl, spread by a little", async () => {
    const { env, store, writer } = instance();
    await writer.attach();
    const { writes } = store.calls;
    for (let second = 0; second < 90; second += 1) await env.advance(1_000);
    const refreshes = store.calls.writes - writes;
    expect(refreshes).toBeGreaterThanOrEqual(25);
    expect(refreshes).toBeLessThanOrEqual(36);
    await writer.release();
  });

  it("one failed refresh is no loss: it is tried again inside the remaining validity", async () => {
    const { env, store, audit, writer } = instance();
    await writer.attach();
    store.writeFaults = ["failed-before", "failed-before"];
    await env.advance(20_000);
    expect(writer.state).toBe("held");
    expect(audit.map(({ action }) => action)).toEqual(["lease/acquire"]);
    await writer.release();
  });

  it("uploads carry the token, and those of an older token are refused", async () => {
    const { url } = await fakeServer();
    const writer = new FencedObjectWriter({
      objects: await openObjects({
        kind: "https+etag",
        base: url.replace("http+etag:", "http:"),
        headers: {},
      }),
    });
    const by = (fence: bigint) => ({ key: { tenant: "default", name: "main" }, fence });
    await writer.put("head", Buffer.from("first"), by(1n));
    await writer.put("head", Buffer.from("second"), by(2n));
    await expect(writer.put("head", Buffer.from("zombie"), by(1n))).rejects.toMatchObject({
      code: "STALE_FENCE",
    });
    expect(await writer.get("head")).toEqual({ bytes: Buffer.from("second"), fence: 2n });
  });
});

/** The audit of a service whose store writes the entries itself, beside the records that they are about. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { realEnv } from "../../src/env/index.ts";
import { StoreLeaseManager } from "../../src/manager/index.ts";
import { FileAuditTrail, LeaseService, verifyAudit } from "../../src/service/index.ts";
import { openEmbeddedStore } from "../../src/stores/embedded/index.ts";
import type { LeaseStore } from "../../src/store/index.ts";
import { Writer } from "./audit/process.ts";
import { allEntries, FaultyDisk } from "./audit/support.ts";

const KEY = { tenant: "default", name: "report" };
const WORKER = fileURLToPath(new URL("./noting-worker.mjs", import.meta.url));

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "solehold-noted-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** `between` sees and may change every call to the store. */
async function world(between: (store: LeaseStore) => LeaseStore = (store) => store) {
  const folder = temporaryFolder();
  const store = await openEmbeddedStore({ folder: `${folder}/data` });
  const disk = new FaultyDisk();
  const audit = await FileAuditTrail.open({
    ...{ folder: `${folder}/audit`, durability: "before-reply", disk },
    notebook: (name) => store.notebook(name),
  });
  const manager = new StoreLeaseManager({ store: between(store), callTimeoutMs: 200 });
  const service = new LeaseService({ manager, audit, env: realEnv });
  const close = async (): Promise<void> => {
    await service.close().catch(() => undefined);
    await audit.close().catch(() => undefined);
    await manager.close();
  };
  onTestFinished(close);
  const audited = async (): Promise<readonly string[]> =>
    (await audit.query({ limit: 1_000 })).map(
      ({ action, outcome, traceId, fence }) =>
        `${traceId} ${action} ${outcome} ${fence === undefined ? "-" : BigInt(fence)}`,
    );
  return { folder, disk, audit, service, audited, close };
}

const owner = (holder: string, token: string) => ({ key: KEY, holder, token });

describe("a service over a store that keeps notes", () => {
  it("answers what was done without a write to the trail's files, and has every entry there afterwards", async () => {
    const { service, disk, audited } = await world();
    disk.failing.set("write", "EIO");
    const granted = await service.grant({ ...owner("a", "t1"), ttlMs: 60_000 }, { traceId: "grant" });
    expect(granted.entry).toMatchObject({ action: "grant", allowed: true, traceId: "grant", code: "LS_OK" });
    expect((await service.renew(owner("a", "t1"), { traceId: "renew" })).outcome.kind).toBe("applied");
    // Nothing is written for a refusal, so it has to be in the files: which cannot be, now.
    const refused = await service.grant({ ...owner("b", "t2"), ttlMs: 60_000 }, { traceId: "refused" });
    expect(refused.outcome).toMatchObject({ kind: "unsettled" });
    disk.failing.clear();
    expect((await service.release(owner("a", "t1"), { traceId: "release" })).outcome.kind).toBe("applied");
    const denied = await service.release(owner("b", "t2"), { traceId: "denied" });
    expect(denied.outcome.kind).toBe("refused");
    expect(await audited()).toEqual([
      "grant grant applied 1",
      "renew renew applied 1",
      "release release applied 1",
      "denied release refused -",
    ]);
  });

  it("tells a release and the grant that its write carries as two entries, in their order", async () => {
    const { service, disk, audited } = await world();
    await service.grant({ ...owner("a", "t1"), ttlMs: 60_000 }, { traceId: "first" });
    disk.failing.set("write", "EIO");
    const [released, granted] = await service.handOver(
      { request: owner("a", "t1"), context: { traceId: "release" } },
      { request: { ...owner("b", "t2"), ttlMs: 60_000 }, context: { traceId: "next" } },
    );
    expect(released).toMatchObject({ superseded: true, entry: { traceId: "release", action: "release" } });
    expect(granted).toMatchObject({ outcome: { kind: "applied" }, entry: { traceId: "next", fence: 2n } });
    disk.failing.clear();
    expect(await audited()).toEqual([
      "first grant applied 1",
      "release release applied 1",
      "next grant applied 2",
    ]);
  });

  it("has one entry for a command whose first write met another's", async () => {
    let isFirst = true;
    const { service, audited } = await world((store) => ({
      ...passing(store),
      apply: async (writes) => {
        const [write] = writes;
        if (isFirst && write?.next?.state === "held") {
          isFirst = false;
          const { aside: _aside, ...bare } = write;
          await store.apply([{ ...bare, next: { ...write.next, nonce: "another", state: "released" } }]);
        }
        return await store.apply(writes);
      },
    }));
    const { outcome } = await service.grant({ ...owner("a", "t1"), ttlMs: 60_000 }, { traceId: "grant" });
    expect(outcome.kind).toBe("applied");
    expect(await audited()).toEqual(["grant grant applied 2"]);
  });

  it("has one entry, over a restart too, for a write whose answer was lost", async () => {
    let isFirst = true;
    const { service, audited, folder, close } = await world((store) => ({
      ...passing(store),
      apply: async (writes) => {
        const reply = await store.apply(writes);
        if (!isFirst) return reply;
        isFirst = false;
        return await new Promise(() => undefined);
      },
    }));
    const { outcome } = await service.grant({ ...owner("a", "t1"), ttlMs: 60_000 }, { traceId: "grant" });
    expect(outcome.kind).toBe("applied");
    expect(await audited()).toEqual(["grant grant applied 1"]);
    await close();
    const store = await openEmbeddedStore({ folder: `${folder}/data` });
    const audit = await FileAuditTrail.open({
      ...{ folder: `${folder}/audit`, durability: "before-reply" },
      notebook: (name) => store.notebook(name),
    });
    expect(audit.takenOver).toBe(0);
    await audit.close();
    await store.close();
    expect(await allEntries(`${folder}/audit`)).toHaveLength(1);
  });
});

describe("kill -9 of such a service", () => {
  it("loses no entry of an acknowledged command, has none twice, and each write has exactly its own", async () => {
    const folder = temporaryFolder();
    const acknowledged: string[] = [];
    let takenOver = 0;
    for (const [round, lines] of [60, 400, 150, 900].entries()) {
      const worker = new Writer(folder, `r${round}`, "append", WORKER);
      await worker.printed(lines);
      await worker.kill();
      expect(worker.lines.length).toBeGreaterThanOrEqual(lines);
      takenOver += Number(worker.lines[0]?.replace("taken over ", ""));
      acknowledged.push(...worker.lines.slice(1));
    }
    const store = await openEmbeddedStore({ folder: `${folder}/data` });
    const audit = await FileAuditTrail.open({
      ...{ folder: `${folder}/audit`, durability: "before-reply" },
      notebook: (name) => store.notebook(name),
    });
    await audit.close();
    takenOver += audit.takenOver;
    // The kills came in the moment that this is about.
    expect(takenOver).toBeGreaterThan(0);
    const entries = (await allEntries(`${folder}/audit`)).filter(({ allowed }) => allowed);
    const found = entries.map(({ traceId, leaseId }) => `${traceId} ${leaseId}`);
    const known = new Set(found);
    expect(acknowledged.filter((line) => !known.has(line))).toEqual([]);
    const commands = entries.filter(({ action }) => action !== "expire").map(({ traceId }) => traceId);
    expect(new Set(commands).size).toBe(commands.length);
    // Grants of a key are in the order of their fences: 1, 2, 3, none missing.
    for (let worker = 0; worker < 16; worker += 1) {
      const grants = entries.filter(({ action, key }) => action === "grant" && key === `job/${worker}`);
      expect(grants.map(({ fence }) => Number(fence))).toEqual(grants.map((_, index) => index + 1));
    }
    expect(await verifyAudit(`${folder}/audit`)).toMatchObject({ ok: true });
    await store.close();
  }, 60_000);
});

/** A store that can be spread: its methods are on its class. */
function passing(store: LeaseStore): LeaseStore {
  return {
    name: store.name,
    capabilities: store.capabilities,
    now: () => store.now?.() ?? 0,
    read: (keys) => store.read(keys),
    apply: (writes) => store.apply(writes),
    list: (query) => store.list(query),
    watch: async (scope, listener) =>
      (await store.watch?.(scope, listener)) ?? { close: async () => undefined },
    close: () => store.close(),
  };
}

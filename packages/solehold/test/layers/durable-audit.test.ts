/** A service whose audit is durable before the reply: what a caller may conclude from an answer. */
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { verifyAudit } from "../../src/audit/index.ts";
import { realEnv } from "../../src/env/index.ts";
import { MemoryExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { Writer } from "../audit/process.ts";
import { allEntries, FaultyDisk, gate, openOn, temporaryFolder } from "../audit/support.ts";

const KEY = { tenant: "default", name: "report" };
const WORKER = fileURLToPath(new URL("./service-worker.mjs", import.meta.url));
const owner = (holder: string, token: string) => ({ key: KEY, holder, token });

async function world() {
  const folder = await temporaryFolder();
  const disk = new FaultyDisk();
  const audit = await openOn(disk, { folder });
  const executor = new MemoryExecutor();
  const service = new LeaseService({ executor, audit, env: realEnv });
  onTestFinished(async () => {
    disk.failing.clear();
    await service.close();
    await audit.close();
    await executor.close();
  });
  const audited = async (): Promise<readonly string[]> =>
    (await allEntries(folder)).map(({ traceId, action, outcome }) => `${traceId} ${action} ${outcome}`);
  return { disk, service, audited };
}

/** A disk that finishes no sync until it is let go on. */
function stuck(disk: FaultyDisk) {
  const [syncing, goOn] = [gate(), gate()];
  disk.beforeSync = async () => {
    syncing.open();
    await goOn.opened;
  };
  // A test that fails must still be able to close the trail.
  onTestFinished(goOn.open);
  return { syncing: syncing.opened, goOn: goOn.open };
}

describe("a service with a durable audit", () => {
  it("answers nothing before its entry is on the disk: no grant, no refusal, no hand-over", async () => {
    const { disk, service, audited } = await world();
    await service.execute({ op: "acquire", ...owner("a", "t1"), ttlMs: 60_000 }, { traceId: "first" });
    const { syncing, goOn } = stuck(disk);
    const answered: string[] = [];
    const note = (what: string) => (): void => void answered.push(what);
    const next = {
      request: { op: "acquire", ...owner("b", "t2"), ttlMs: 60_000 },
      context: { traceId: "next" },
    } as const;
    const other = { key: { ...KEY, name: "other" }, holder: "c", ttlMs: 60_000 };
    const all = Promise.all([
      service.execute({ ...other, op: "acquire" }, { traceId: "granted" }).then(note("grant")),
      service.execute({ ...owner("x", "guess"), op: "renew" }, { traceId: "refused" }).then(note("refusal")),
      service
        .execute({ op: "release", ...owner("a", "t1"), next }, { traceId: "release" })
        .then(note("hand-over")),
    ]);
    await syncing;
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toEqual([]);
    goOn();
    await all;
    expect([...answered].sort()).toEqual(["grant", "hand-over", "refusal"]);
    expect([...(await audited())].sort()).toEqual([
      "first grant applied",
      "granted grant applied",
      "next grant applied",
      "refused renew refused",
      "release release applied",
    ]);
  });

  it("makes the entries of concurrent requests safe with one write and one sync", async () => {
    const { disk, service } = await world();
    await service.execute({ op: "acquire", ...owner("a", "t1"), ttlMs: 60_000 });
    const before = { ...disk.counts };
    const names = Array.from({ length: 50 }, (_, index) => `job-${index}`);
    await Promise.all(
      names.map((name) =>
        service.execute({ op: "acquire", key: { ...KEY, name }, holder: "h", ttlMs: 60_000 }),
      ),
    );
    expect([disk.counts.write - before.write, disk.counts.sync - before.sync]).toEqual([1, 1]);
  });

  it("confirms nothing while the disk is full, and goes on when there is space again", async () => {
    const { disk, service, audited } = await world();
    disk.failing.set("write", "ENOSPC");
    const outcome = await service.execute({ op: "acquire", ...owner("a", "t1"), ttlMs: 60_000 });
    expect(outcome).toMatchObject({ kind: "unsettled", outcome: "unknown", cause: { kind: "full" } });
    disk.failing.clear();
    const again = await service.execute(
      { op: "acquire", ...owner("a", "t1"), ttlMs: 60_000 },
      { traceId: "again" },
    );
    expect(again.kind).toBe("applied");
    expect(await audited()).toEqual(["again grant applied"]);
  });
});

describe("kill -9 of such a service", () => {
  it("loses no entry of an acknowledged command, has none twice, and the chain verifies", async () => {
    const folder = await temporaryFolder();
    const acknowledged: string[] = [];
    for (const [round, lines] of [60, 400, 150].entries()) {
      const worker = new Writer(folder, `r${round}`, "append", WORKER);
      await worker.printed(lines);
      await worker.kill();
      expect(worker.lines.length).toBeGreaterThanOrEqual(lines);
      acknowledged.push(...worker.lines);
    }
    const audit = await openOn(new FaultyDisk(), { folder: `${folder}/audit` });
    await audit.close();
    const entries = (await allEntries(`${folder}/audit`)).filter(({ allowed }) => allowed);
    const found = new Set(entries.map(({ traceId, leaseId }) => `${traceId} ${leaseId}`));
    expect(acknowledged.filter((line) => !found.has(line))).toEqual([]);
    const commands = entries.filter(({ action }) => action !== "expire").map(({ traceId }) => traceId);
    expect(new Set(commands).size).toBe(commands.length);
    // What the kills cut off was never answered: the grants that are there are still in the order of their fences.
    for (let worker = 0; worker < 16; worker += 1) {
      const fences = entries
        .filter(({ action, key }) => action === "grant" && key === `job/${worker}`)
        .map(({ fence }) => BigInt(fence ?? 0));
      expect(fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? 0n))).toBe(true);
    }
    expect(await verifyAudit(`${folder}/audit`)).toMatchObject({ ok: true });
  });
});

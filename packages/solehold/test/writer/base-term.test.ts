/** One base term, 1, wherever a term is published: the writer lease and its lifecycle take over from each other. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { openFileStore } from "../../src/stores/file/index.ts";
import { WriterInstance, WriterLeaseStore } from "../../src/writer/index.ts";

const root = mkdtempSync(join(tmpdir(), "solehold-base-term-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function world(published?: object) {
  const folder = mkdtempSync(join(root, "case-"));
  const path = join(folder, "leases", "main.lease.json");
  if (published !== undefined) {
    mkdirSync(join(folder, "leases"));
    writeFileSync(path, JSON.stringify(published));
  }
  const env = new ManualEnv();
  const store = await openFileStore({ folder, env });
  const leases = new Leases({ executor: new StoreExecutor({ store, env }), env, holder: "instance-a" });
  const instance = new WriterInstance({
    leases,
    databaseKey: "main",
    lease: "required",
    onDrain: () => undefined,
  });
  return { env, store, leases, instance, wire: () => JSON.parse(readFileSync(path, "utf8")) };
}

/** As the system wrote it before it knew terms. */
const LEGACY = {
  database_key: "main",
  holder_id: "writer-old",
  generation: 4,
  acquired_at_ms: 1,
  expires_at_ms: 2,
};

describe("an instance that names no term", () => {
  it("takes over an expired lease object without a term", async () => {
    const { instance, wire } = await world(LEGACY);
    expect(await instance.attach()).toMatchObject({ writer: true });
    expect(wire()).toMatchObject({ holder_id: "instance-a", term: 1 });
    expect(instance.fence).toBeGreaterThan(4n);
    await instance.release();
  });

  it("publishes the base term, 1", async () => {
    const { instance, wire } = await world();
    await instance.attach();
    expect(wire().term).toBe(1);
    await instance.release();
  });

  it("takes over from the writer lease store and gives over to it, with growing fences", async () => {
    const { env, store, instance, wire } = await world();
    const writers = new WriterLeaseStore({ store, env });
    await writers.tryAcquire("main", "writer-b", 1_000);
    await env.advance(1_001);
    expect(await instance.attach()).toMatchObject({ writer: true });
    const { generation } = wire();
    await instance.release();
    const next = await writers.tryAcquire("main", "writer-c", 1_000);
    expect(next.term).toBe(1n);
    expect(next.generation).toBeGreaterThan(BigInt(generation));
  });
});

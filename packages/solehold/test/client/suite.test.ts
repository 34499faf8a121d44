// The suite of Leases over stores in this process: memory, and the embedded store on a disk.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { decorateStore, MemoryStore } from "../../src/store/index.ts";
import { openEmbeddedStore } from "../../src/stores/sqlite/index.ts";
import { describeLeases, World } from "./suite/index.ts";

describe("Leases over memory", () => {
  describeLeases(async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    return new World({ env, openExecutor: async () => new StoreExecutor({ store, env }) });
  });
});

describe("Leases over the embedded store", () => {
  describeLeases(async () => {
    const env = new ManualEnv();
    const folder = await mkdtemp(join(tmpdir(), "solehold-suite-"));
    // One store for all clients: events between stores travel through the file system, in a time that no clock here knows.
    const store = await openEmbeddedStore({ folder, env });
    const shared = decorateStore(store, { close: async () => undefined });
    onTestFinished(async () => {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    });
    return new World({ env, openExecutor: async () => new StoreExecutor({ store: shared, env }) });
  });
});

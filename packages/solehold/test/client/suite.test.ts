// The suite of Leases over stores in this process: memory, and the embedded store on a disk.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { openManager } from "../../src/client/connect.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreLeaseManager } from "../../src/manager/index.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { describeLeases, World } from "./suite/index.ts";

describe("Leases over memory", () => {
  describeLeases(async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    return new World({ env, openManager: async () => new StoreLeaseManager({ store, env }) });
  });
});

describe("Leases over the embedded store", () => {
  describeLeases(async () => {
    const env = new ManualEnv();
    const folder = await mkdtemp(join(tmpdir(), "solehold-suite-"));
    onTestFinished(async () => await rm(folder, { recursive: true, force: true }));
    return new World({ env, openManager: () => openManager(`embedded:${folder}`, { env }) });
  });
});

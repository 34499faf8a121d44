/**
 * What each engine can do, as its store says when it is open on the real server. The test command prints it as a
 * table, with how many cases of the kit passed beside it (scripts/engine-table.mjs reads both from the report).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/client/connect.ts";
import type { LeaseStore, StoreCapabilities } from "../../src/store/index.ts";
import { openObjectStore } from "../../src/stores/object/index.ts";
import { type EngineName, engine, engineRecord } from "../engines/index.ts";
import { openOn } from "../stores/dynamodb/place.ts";
import { azuritePlace, cephPlace, freshPrefix } from "../stores/object/places.ts";

type Stated = Pick<StoreCapabilities, "durable" | "clock" | "watch" | "conditionalDelete">;

interface Row {
  /** As the titles of the kit begin. */
  readonly name: string;
  /** The server whose version is shown; null in process. */
  readonly server: EngineName | null;
  open(): Promise<LeaseStore>;
  readonly can: Stated;
}

declare module "vitest" {
  interface TaskMeta {
    engine?: { readonly name: string; readonly version: string; readonly maxBatch: number } & Stated;
  }
}

const folder = mkdtempSync(join(tmpdir(), "solehold-engines-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ROWS: readonly Row[] = [
  {
    name: "memory",
    server: null,
    open: () => openStore("memory:"),
    can: { durable: false, clock: "exact", watch: true, conditionalDelete: true },
  },
  {
    name: "embedded",
    server: null,
    open: () => openStore(`embedded:${join(folder, "embedded")}`),
    can: { durable: true, clock: "exact", watch: true, conditionalDelete: true },
  },
  {
    name: "file",
    server: null,
    open: () => openStore(`file:${join(folder, "file")}`),
    can: { durable: true, clock: "exact", watch: true, conditionalDelete: true },
  },
  {
    name: "Redis",
    server: "redis",
    open: () => openStore(engine("redis")),
    can: { durable: false, clock: "reply", watch: true, conditionalDelete: true },
  },
  {
    name: "PostgreSQL",
    server: "postgres",
    open: () => openStore(engine("postgres")),
    can: { durable: true, clock: "reply", watch: true, conditionalDelete: true },
  },
  {
    name: "etcd",
    server: "etcd",
    open: () =>
      openStore(
        `etcd://${engineRecord("etcd")
          .urls.map((url) => new URL(url).host)
          .join(",")}`,
      ),
    can: { durable: true, clock: "none", watch: true, conditionalDelete: true },
  },
  {
    name: "NATS",
    server: "nats",
    open: () => openStore(engine("nats")),
    can: { durable: false, clock: "none", watch: true, conditionalDelete: true },
  },
  {
    name: "MariaDB",
    server: "mariadb",
    open: () => openStore(engine("mariadb")),
    can: { durable: true, clock: "reply", watch: false, conditionalDelete: true },
  },
  {
    name: "DynamoDB (dynalite)",
    server: "dynalite",
    open: () => openOn(engine("dynalite")),
    can: { durable: false, clock: "reply", watch: false, conditionalDelete: true },
  },
  {
    name: "S3 (Ceph)",
    server: "ceph",
    open: () => openObjectStore({ place: cephPlace(), prefix: freshPrefix(), timeoutMs: 20_000 }),
    can: { durable: true, clock: "reply", watch: false, conditionalDelete: false },
  },
  {
    name: "Azure Blob (azurite)",
    server: "azurite",
    open: async () => openObjectStore({ place: await azuritePlace(), timeoutMs: 20_000 }),
    can: { durable: true, clock: "reply", watch: false, conditionalDelete: true },
  },
];

describe("what an engine can do", () => {
  it.for(ROWS)("is stated by $name", async ({ name, server, open, can }, { task }) => {
    const store = await open();
    const { durable, clock, watch, conditionalDelete, maxBatch } = store.capabilities;
    await store.close();
    const version = server === null ? "in process" : engineRecord(server).version;
    task.meta.engine = { name, version, durable, clock, watch, conditionalDelete, maxBatch };
    expect({ durable, clock, watch, conditionalDelete }).toEqual(can);
  });
});

/**
 * Somebody deletes a record by hand while its holder still believes in it: the next grant has a higher fence, so that
 * what the fence guards refuses the old holder. One test, every engine. (The embedded store reports a row that is missing
 * as damage: in its own tests.)
 *
 * Where fences come from the store's clock, that holds once the clock has passed the instant that the first grant was
 * stamped with: at once where it counts milliseconds, after a second or so where it is an HTTP Date.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import type { LeaseStore } from "../../src/store/index.ts";
import { openEtcdStore } from "../../src/stores/etcd/index.ts";
import { openFileStore } from "../../src/stores/file/index.ts";
import { openMysqlStore } from "../../src/stores/mysql/index.ts";
import { openNatsStore } from "../../src/stores/nats/index.ts";
import { openObjectStore } from "../../src/stores/object/index.ts";
import { connectObjects } from "../../src/stores/object/open.ts";
import { openPostgresStore } from "../../src/stores/postgres/index.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { engine, engineRecord } from "../engines/index.ts";
import { openOn, request } from "../stores/dynamodb/place.ts";
import { Admin } from "../stores/nats/admin.ts";
import { azuritePlace, cephPlace } from "../stores/object/places.ts";
import { until } from "../stores/records.ts";

interface Row {
  readonly title: string;
  open(): Promise<LeaseStore>;
  /** The record of this name, in the tenant "default". */
  deleteByHand(name: string): Promise<unknown>;
}

/** Of this run alone: the engines are shared. */
const PLACE = `by_hand_${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), "solehold-by-hand-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const etcdHosts = () => engineRecord("etcd").urls.map((url) => new URL(url).host);
const ceph = () => ({ place: cephPlace(), prefix: `${PLACE}/`, clockSkewMs: 0 });
const azurite = { place: null as Awaited<ReturnType<typeof azuritePlace>> | null };

const ROWS: readonly Row[] = [
  {
    title: "a file that is removed",
    open: () => openFileStore({ folder }),
    deleteByHand: async (name) => unlinkSync(join(folder, "leases", `${name}.lease.json`)),
  },
  {
    title: "DEL on Redis",
    open: () => openRedisStore({ url: engine("redis"), prefix: `${PLACE}:` }),
    deleteByHand: async (name) => {
      const client = new Redis(engine("redis"));
      await client.del(`{${PLACE}:}default/${name}`);
      client.disconnect();
    },
  },
  {
    title: "DELETE on PostgreSQL",
    open: () => openPostgresStore({ url: engine("postgres"), table: PLACE }),
    deleteByHand: async (name) => {
      const client = new pg.Client(engine("postgres"));
      await client.connect();
      await client.query(`delete from solehold.${PLACE} where name = $1`, [name]);
      await client.end();
    },
  },
  {
    title: "DELETE on MariaDB",
    open: () => openMysqlStore({ url: engine("mariadb"), table: PLACE }),
    deleteByHand: async (name) => {
      const connection = await createConnection({ uri: engine("mariadb") });
      await connection.query(`delete from ${PLACE} where name = ?`, [name]);
      await connection.end();
    },
  },
  {
    title: "etcdctl del",
    open: () => openEtcdStore({ url: `etcd://${etcdHosts().join(",")}/${PLACE}` }),
    deleteByHand: (name) => {
      const args = ["--endpoints", etcdHosts().join(","), "del", `${PLACE}/default/${name}`];
      return promisify(execFile)("etcdctl", args, { env: { ...process.env, ETCDCTL_API: "3" } });
    },
  },
  {
    title: "a purge on NATS",
    open: () => openNatsStore({ url: engine("nats"), bucket: PLACE }),
    deleteByHand: (name) => new Admin(engine("nats")).purgeKey(PLACE, `default.${name}`),
  },
  {
    title: "DeleteItem on DynamoDB (dynalite)",
    open: () => openOn(engine("dynalite"), { clockSkewMs: 0 }),
    deleteByHand: (name) => {
      const Key = { tenant: { S: "default" }, name: { S: name } };
      return request(engine("dynalite"), "DeleteItem", { TableName: "leases", Key });
    },
  },
  {
    title: "an object that is removed from S3 (Ceph)",
    open: () => openObjectStore(ceph()),
    deleteByHand: async (name) => {
      const objects = await connectObjects(ceph().place);
      await objects.remove(`${PLACE}/${name}.lease.json`);
      objects.close();
    },
  },
  {
    title: "a blob that is removed from Azure (azurite)",
    open: async () => {
      azurite.place ??= await azuritePlace();
      return openObjectStore({ place: azurite.place, clockSkewMs: 0 });
    },
    deleteByHand: async (name) => {
      const objects = await connectObjects(azurite.place!);
      await objects.remove(`leases/${name}.lease.json`);
      objects.close();
    },
  },
];

describe.each(ROWS)("$title", ({ open, deleteByHand }) => {
  it("leaves the next grant with a higher fence, for another client and for the same", async () => {
    const [ours, theirs] = [await open(), await open()];
    const clients = [ours, theirs, ours].map((store, index) => ({
      store,
      leases: new Leases({ executor: new StoreExecutor({ store }), holder: `holder-${index}` }),
    }));
    const name = `deleted-${process.pid}`;
    let last = 0n;
    for (const { store, leases } of clients) {
      const attempt = await leases.tryAcquire(name, { ttl: "60s", autoRenew: false });
      expect(attempt.ok && attempt.lease.fence).toBeGreaterThan(last);
      last = attempt.ok ? attempt.lease.fence : 0n;
      await passed(store, last);
      await deleteByHand(name);
      const [gone] = (await store.read([{ tenant: "default", name }])).records;
      expect(gone).toEqual({ kind: "absent" });
    }
    for (const { leases } of clients) await leases.close();
  });
});

/** Until the store's clock, where it has one, has passed the instant that a fence was stamped with. */
async function passed(store: LeaseStore, fence: bigint): Promise<void> {
  if (store.capabilities.clock === "none") return;
  await until("the store's clock is later", async () => {
    const { storeTimeMs } = await store.read([{ tenant: "default", name: "any" }]);
    return BigInt(storeTimeMs ?? 0) * 1_000n > fence ? true : null;
  });
}

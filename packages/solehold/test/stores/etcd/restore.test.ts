/** A real member that is restored from a backup, and records that are deleted behind the store's back. */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, it } from "vitest";
import { keyId } from "../../../src/core/index.ts";
import { type EtcdStore, openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { type Engine, engine as sharedEngine, startEtcd } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { base64, EventLog, gateway, newPrefix, storeUrl } from "./support.ts";

const prefix = newPrefix();
const opened: EtcdStore[] = [];
const engines: Engine[] = [];

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  for (const engine of engines.splice(0)) await engine.stop();
});

async function open(url: string): Promise<EtcdStore> {
  const store = await openEtcdStore({ url: storeUrl([url], prefix) });
  opened.push(store);
  return store;
}

const etcdctl = (url: string, ...args: readonly string[]) =>
  promisify(execFile)("etcdctl", ["--endpoints", url, ...args], {
    env: { ...process.env, ETCDCTL_API: "3" },
  });

interface Backup {
  /** Puts the member back to where it was, under the same cluster id. */
  restore(): Promise<void>;
}

async function backUp({ url, dataDir, processes }: Engine): Promise<Backup> {
  const { members } = (await gateway(url, "cluster/member/list", {})) as {
    members: { name: string; peerURLs: string[] }[];
  };
  const [{ name, peerURLs }] = members as [{ name: string; peerURLs: string[] }];
  const [file, data, peer] = [join(dataDir, "backup.db"), join(dataDir, name), String(peerURLs[0])];
  await etcdctl(url, "snapshot", "save", file);
  const restore = async (): Promise<void> => {
    await processes[0]!.kill();
    rmSync(data, { recursive: true });
    const cluster = [
      "--name",
      name,
      "--initial-cluster",
      `${name}=${peer}`,
      "--initial-cluster-token",
      dataDir,
    ];
    const place = ["--initial-advertise-peer-urls", peer, "--data-dir", data];
    await etcdctl(url, "snapshot", "restore", file, ...cluster, ...place);
    await processes[0]!.restart();
  };
  return { restore };
}

async function start(): Promise<Engine> {
  const engine = await startEtcd({ members: 1 });
  engines.push(engine);
  return engine;
}

it("a client that saw what a restore lost gets one error, before it writes, and its watches say reset", async () => {
  const engine = await start();
  const store = await open(engine.url);
  const log = new EventLog();
  await store.watch({ tenant: null, prefix: "" }, log.listener);
  const kept = recordOf("kept");
  await create(store, kept);
  const backup = await backUp(engine);
  const lost = recordOf("lost");
  const version = await create(store, lost);
  await log.write(lost.nonce);
  await backup.restore();
  await log.next(({ kind }) => kind === "reset");
  const error = await rejection(store.apply([writeOf(recordOf("late"))]));
  expect(error).toMatchObject({ name: "StoreError", kind: "data-loss", outcome: "not-applied" });
  expect(error.message).toMatch(/^[^\n]*lost data[^\n]*holders may still believe[^\n]*$/);
  const { records } = await store.read([kept.key, lost.key, recordOf("late").key]);
  expect(records.map(({ kind }) => kind)).toEqual(["found", "absent", "absent"]);
  const late = await applyOne(store, writeOf(recordOf("lost"), version));
  expect(late).toMatchObject({ kind: "conflict", current: { kind: "absent" } });
  const after = recordOf("after");
  await create(store, after);
  await log.write(after.nonce);
  expect(log.resets).toBe(1);
});

it("a restore that others have written beyond is noticed all the same, and no old version fits a new record", async () => {
  const engine = await start();
  const writer = await open(engine.url);
  for (let index = 0; index < 30; index += 1) await create(writer, recordOf(`before/${index}`));
  const store = await open(engine.url);
  const backup = await backUp(engine);
  const version = await create(store, recordOf("again"));
  await backup.restore();
  const other = await open(engine.url);
  const again = recordOf("again");
  const newVersion = await create(other, again);
  const revisionIn = (text: string): string => text.split("-")[0]!;
  expect(revisionIn(newVersion)).toBe(revisionIn(version));
  for (let index = 0; index < 3; index += 1) await create(other, recordOf(`beyond/${index}`));
  const error = await rejection(store.read([again.key]));
  expect(error.kind).toBe("data-loss");
  expect(error.message).toContain("its log went back");
  const stale = await applyOne(store, writeOf(recordOf("again"), version));
  expect(stale).toMatchObject({ kind: "conflict", current: { record: { nonce: again.nonce } } });
});

it("the revision of a read is above every generation that a key had, also after its record was deleted by hand", async () => {
  const url = sharedEngine("etcd");
  const store = await open(url);
  const { key } = recordOf("by-hand");
  let highest = 0n;
  for (let round = 0; round < 3; round += 1) {
    expect((await store.read([key])).records[0]!.kind).toBe("absent");
    let version: string | null = null;
    for (let grant = 0; grant < 3; grant += 1) {
      const { revision = 0n } = await store.read([key]);
      expect(revision).toBeGreaterThanOrEqual(highest);
      // As core grants: above the last generation and above the revision.
      highest = revision + 1n;
      const next = writeOf(recordOf(key.name, { generation: highest }), version);
      const result = await applyOne(store, next);
      if (result.kind !== "applied") throw new Error(`not applied: ${result.kind}`);
      version = result.version;
    }
    await gateway(url, "kv/deleterange", { key: base64(`${prefix}/${keyId(key)}`) });
  }
});

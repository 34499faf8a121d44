/** Watch events over lost connections, compactions and quiet times, on a real member of our own. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { StoredRecord } from "../../../src/store/index.ts";
import type { EtcdStore } from "../../../src/stores/etcd/index.ts";
import { type Engine, type FaultProxy, startEtcd, startProxy } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { EventLog, gateway, newPrefix, opened, putRaw, revisionAt, storeUrl, until } from "./support.ts";

let server: Engine;
let proxy: FaultProxy;
const prefix = newPrefix();
const stores: EtcdStore[] = [];
const everything = { tenant: null, prefix: "" };

beforeAll(async () => {
  const progress = "--experimental-watch-progress-notify-interval=100ms";
  server = await startEtcd({ members: 1, flags: [progress, "--max-request-bytes=200000"] });
  proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  proxy.heal();
});

afterAll(async () => {
  await proxy?.close();
  await server?.stop();
});

async function open(url: string, timeoutMs = 2_000): Promise<EtcdStore> {
  const store = await opened({ url: storeUrl([url], prefix), timeoutMs });
  stores.push(store);
  return store;
}

/** A client whose connection can be disturbed, and one whose cannot. */
async function openBoth(): Promise<readonly [EtcdStore, EtcdStore]> {
  return [await open(proxy.through(server.url)), await open(server.url)];
}

const storedIn = (log: EventLog) => log.events.map((event) => event.kind === "changed" && event.stored);
const versionIn = (stored: StoredRecord | undefined) => (stored?.kind === "found" ? stored.version : null);

it("a watch goes on where it was after its connection was lost: nothing is missing, nobody has to look", async () => {
  const [watching, writing] = await openBoth();
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "gap/" }, log.listener);
  const before = recordOf("gap/before");
  await create(writing, before);
  await log.write(before.nonce);
  proxy.freeze();
  // More than the server puts into one message, so that it comes in pieces.
  const batches = Array.from({ length: 8 }, (_, batch) =>
    Array.from({ length: 80 }, (_, index) => recordOf(`gap/${batch}/${index}`, { note: "n".repeat(512) })),
  );
  for (const batch of batches) await writing.apply(batch.map((next) => writeOf(next)));
  proxy.cut();
  proxy.heal();
  for (const { nonce } of batches.flat()) await log.write(nonce);
  expect(log.resets).toBe(0);
});

it("a watch whose revision was compacted away says so once, and goes on", async () => {
  const [watching, writing] = await openBoth();
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "compacted/" }, log.listener);
  proxy.freeze();
  const missed = recordOf("compacted/a");
  const version = await create(writing, missed);
  const latest = recordOf("compacted/a", { generation: 2n });
  await applyOne(writing, writeOf(latest, version));
  await gateway(server.url, "kv/compaction", { revision: await revisionAt(server.url), physical: true });
  proxy.cut();
  proxy.heal();
  await log.next(({ kind }) => kind === "reset");
  const after = recordOf("compacted/b");
  await create(writing, after);
  await log.write(after.nonce);
  expect(log.resets).toBe(1);
});

it("a quiet watch keeps up with the cluster, so a compaction costs it nothing", async () => {
  const [watching, writing] = await openBoth();
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "quiet/" }, log.listener);
  // Reports of progress cannot be seen from here: each round leaves more time for one to have come.
  for (let pauseMs = 100; ; pauseMs *= 2) {
    log.events.length = 0;
    for (const half of ["a", "b"]) await create(writing, recordOf(`elsewhere/${pauseMs}/${half}`));
    const revision = await revisionAt(server.url);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    await gateway(server.url, "kv/compaction", { revision, physical: true });
    proxy.cut();
    const after = recordOf(`quiet/${pauseMs}`);
    await create(writing, after);
    await log.write(after.nonce);
    if (log.resets === 0) break;
    // The test's own timeout is the limit: how soon the server reports its progress is not promised.
  }
});

it("an event carries what a read would show: the record with its version, its absence, its damage", async () => {
  const [watching, writing] = await openBoth();
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "event/" }, log.listener);
  const [kept, deleted, damaged] = ["event/a", "event/b", "event/c"].map((name) => recordOf(name));
  for (const record of [kept!, deleted!]) {
    await create(writing, record);
    await log.write(record.nonce);
  }
  const { records: before } = await writing.read([kept!.key, deleted!.key]);
  expect(storedIn(log)).toEqual(before);
  await applyOne(writing, { key: deleted!.key, expected: versionIn(before[1]), next: null });
  await putRaw(server.url, prefix, damaged!.key, "damage");
  await log.next((event) => event.kind === "changed" && event.stored?.kind === "corrupt");
  const { records: after } = await writing.read([deleted!.key, damaged!.key]);
  expect(after.map(({ kind }) => kind)).toEqual(["absent", "corrupt"]);
  expect(storedIn(log)).toEqual([...before, ...after]);
});

it("a watch that cannot be set up is an error, and works once the server is there", async () => {
  const store = await open(proxy.through(server.url), 500);
  proxy.freeze();
  const refused = await rejection(store.watch(everything, () => undefined));
  expect(refused).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "not-applied" });
  proxy.heal();
  const log = new EventLog();
  await until("the watch is set up", () => store.watch(everything, log.listener));
  const late = recordOf("late-watch");
  await create(await open(server.url), late);
  await log.write(late.nonce);
});

it("a watch of a closed store says nothing more, also when it was closed while it was away", async () => {
  const [watching, writing] = await openBoth();
  const log = new EventLog();
  await watching.watch(everything, log.listener);
  proxy.cut();
  await watching.close();
  const other = new EventLog();
  await writing.watch(everything, other.listener);
  const later = recordOf("later");
  await create(writing, later);
  await other.write(later.nonce);
  expect(log.events).toEqual([]);
});

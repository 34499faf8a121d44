/** Members that are silent, lost or wrong: what the caller learns, who is asked next, and that nothing breaks. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { keyId } from "../../../src/core/index.ts";
import type { WriteResult } from "../../../src/store/index.ts";
import { ClusterIdentity } from "../../../src/stores/etcd/identity.ts";
import type { EtcdStore } from "../../../src/stores/etcd/index.ts";
import { engineRecord, type FaultProxy, startProxy } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { base64, gateway, newPrefix, opened, storeUrl, until } from "./support.ts";

const { urls, url } = engineRecord("etcd");
const prefix = newPrefix();
const stores: EtcdStore[] = [];
const proxies: FaultProxy[] = [];
const strays: unknown[] = [];
const noteStray = (error: unknown): void => void strays.push(error);

beforeAll(() => void process.on("unhandledRejection", noteStray).on("uncaughtException", noteStray));

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const proxy of proxies.splice(0)) await proxy.close();
  expect(strays.splice(0)).toEqual([]);
});

afterAll(() => void process.off("unhandledRejection", noteStray).off("uncaughtException", noteStray));

async function open(members: readonly string[], timeoutMs = 2_000): Promise<EtcdStore> {
  const store = await opened({ url: storeUrl(members, prefix), timeoutMs });
  stores.push(store);
  return store;
}

async function proxyTo(target: string): Promise<FaultProxy & { readonly url: string }> {
  const proxy = await startProxy({ targetPort: Number(new URL(target).port) });
  proxies.push(proxy);
  return Object.assign(proxy, { url: proxy.through(target) });
}

/** A store on two members, and the way to the one that it uses. */
async function openOnTwo(timeoutMs?: number): Promise<{ store: EtcdStore; used: FaultProxy }> {
  const ways = [await proxyTo(urls[0]!), await proxyTo(urls[1]!)];
  const store = await open(
    ways.map((way) => way.url),
    timeoutMs,
  );
  const used = await until("one connection is left", async () => {
    const connected = ways.filter(({ connections }) => connections > 0);
    return connected.length === 1 ? connected[0]! : null;
  });
  return { store, used };
}

/** How often etcd says that the key was written since it was created. */
async function timesWritten(name: string): Promise<number> {
  const key = base64(`${prefix}/${keyId(recordOf(name).key)}`);
  const { kvs } = (await gateway(url, "kv/range", { key })) as { kvs: { version: string }[] };
  return Number(kvs[0]!.version);
}

describe("a member that falls silent", () => {
  it("costs a read nothing but time: another one answers within the same call", async () => {
    const { store, used } = await openOnTwo();
    const record = recordOf("silent/read");
    await create(store, record);
    used.freeze();
    expect((await store.read([record.key])).records[0]).toMatchObject({ record: { nonce: record.nonce } });
  });

  it("leaves a write unknown, is not asked again, and the write is not done twice", async () => {
    const { store, used } = await openOnTwo();
    const version = await create(store, recordOf("silent/write"));
    used.dropReplies();
    const next = recordOf("silent/write", { generation: 2n });
    const lost = await rejection(store.apply([writeOf(next, version)]));
    expect(lost).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "unknown" });
    const [stored] = (await store.read([next.key])).records;
    expect(stored).toMatchObject({ kind: "found", record: { nonce: next.nonce } });
    expect(await timesWritten("silent/write")).toBe(2);
  });

  it("is given up after its own time, long before that of the call", async () => {
    const way = await proxyTo(url);
    const options = { timeoutMs: 50_000, memberTimeoutMs: 200 };
    const store = await opened({ url: storeUrl([way.url], prefix), ...options });
    stores.push(store);
    way.freeze();
    const lost = await rejection(store.apply([writeOf(recordOf("silent/early"))]));
    expect(lost).toMatchObject({ kind: "timeout", outcome: "unknown" });
    expect(lost.message).toContain("within 200 ms");
  });
});

describe("a connection that is lost", () => {
  it("leaves a write that was under way unknown, and it is never sent again", async () => {
    const way = await proxyTo(url);
    const store = await open([way.url]);
    const version = await create(store, recordOf("reset"));
    way.dropReplies();
    const dropped = way.nextDroppedReply();
    const next = recordOf("reset", { generation: 2n });
    const call = rejection(store.apply([writeOf(next, version)]));
    await dropped;
    way.heal();
    expect(await call).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    const [stored] = (await store.read([next.key])).records;
    expect(stored).toMatchObject({ kind: "found", record: { nonce: next.nonce } });
    expect(await timesWritten("reset")).toBe(2);
  });

  it("costs a read nothing: it is asked again on a new one, and writes follow there", async () => {
    const { store, used } = await openOnTwo();
    const version = await create(store, recordOf("cut"));
    const next = recordOf("cut", { generation: 2n });
    used.cut();
    expect((await store.read([next.key])).records[0]).toMatchObject({ kind: "found", version });
    expect((await applyOne(store, writeOf(next, version))).kind).toBe("applied");
  });

  it("makes a write that finds no member not applied, for certain", async () => {
    const way = await proxyTo(url);
    const store = await open([way.url], 400);
    await way.close();
    const refused = await until("the loss was noticed", async () => {
      const error = await rejection(store.apply([writeOf(recordOf("nowhere"))]));
      return error.outcome === "not-applied" ? error : null;
    });
    expect(refused.kind).toBe("unreachable");
    expect(refused.message).toContain("start etcd or correct the URL");
  });
});

it("a call of a store that is closed meanwhile is rejected, and so is every later one", async () => {
  const way = await proxyTo(url);
  const store = await open([way.url]);
  way.dropReplies();
  const dropped = way.nextDroppedReply();
  const write = rejection(store.apply([writeOf(recordOf("closing"))]));
  await dropped;
  const read = rejection(store.read([recordOf("closing").key]));
  await store.close();
  expect((await Promise.all([write, read])).map(({ outcome }) => outcome)).toEqual([
    "unknown",
    "not-applied",
  ]);
  expect(await rejection(store.read([]))).toMatchObject({ kind: "closed", outcome: "not-applied" });
});

it("a batch that is larger than etcd takes is refused, and one of the largest size is not", async () => {
  const store = await open(urls);
  const { maxBatch } = store.capabilities;
  const writes = Array.from({ length: maxBatch + 1 }, (_, index) => writeOf(recordOf(`large/${index}`)));
  const versions = (await store.apply(writes.slice(1))).results.map(versionOf);
  expect(versions).not.toContain(null);
  const updates = writes.slice(1).map((write, index) => ({ ...write, expected: versions[index]! }));
  expect((await store.apply(updates)).results.map(versionOf)).not.toContain(null);
  const tooMany = [...updates, writes[0]!];
  expect(await rejection(store.apply(tooMany))).toMatchObject({ kind: "config", outcome: "not-applied" });
});

const versionOf = (result: WriteResult) => (result.kind === "applied" ? result.version : null);

describe("replies that overtake each other", () => {
  const at = (revision: bigint) => ({ clusterId: "1", revision, raftIndex: 0n });

  it("are not taken for a cluster that went back", () => {
    const identity = new ClusterIdentity();
    identity.expectReply()(at(10n));
    const [first, second] = [identity.expectReply(), identity.expectReply()];
    second(at(12n));
    first(at(11n));
    expect(identity.takeLoss()).toBeNull();
    identity.expectReply()(at(11n));
    expect(identity.takeLoss()).toBe("it went back from revision 12 to 11");
  });

  it("after a loss report it only once", () => {
    const identity = new ClusterIdentity();
    identity.expectReply()(at(10n));
    const [first, second] = [identity.expectReply(), identity.expectReply()];
    first(at(5n));
    expect(identity.takeLoss()).toBe("it went back from revision 10 to 5");
    second(at(6n));
    identity.expectReply()(at(6n));
    expect(identity.takeLoss()).toBeNull();
    expect(identity.losses).toBe(1);
  });
});

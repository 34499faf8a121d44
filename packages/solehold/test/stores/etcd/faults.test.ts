/** Connections that are reset, frozen and closed in every state: each call ends as a StoreError, and nothing else breaks. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { StoreError } from "../../../src/store/index.ts";
import type { EtcdStore } from "../../../src/stores/etcd/index.ts";
import { engine, type FaultProxy, startProxy } from "../../engines/index.ts";
import { create, recordOf, writeOf } from "../records.ts";
import { EventLog, newPrefix, opened, storeUrl, until } from "./support.ts";

const url = engine("etcd");
const prefix = newPrefix();
const strays: unknown[] = [];
const noteStray = (error: unknown): void => void strays.push(error);
let proxy: FaultProxy;
let store: EtcdStore | null = null;

beforeAll(async () => {
  process.on("unhandledRejection", noteStray).on("uncaughtException", noteStray);
  proxy = await startProxy({ targetPort: Number(new URL(url).port) });
});

afterEach(async () => {
  await store?.close();
  expect(strays.splice(0)).toEqual([]);
});

afterAll(async () => {
  process.off("unhandledRejection", noteStray).off("uncaughtException", noteStray);
  await proxy?.close();
});

async function open(): Promise<EtcdStore> {
  const options = { timeoutMs: 500, memberTimeoutMs: 200 };
  return await opened({ url: storeUrl([proxy.through(url)], prefix), ...options });
}

type Ended = Promise<readonly PromiseSettledResult<unknown>[]>;

/** All kinds of calls at once. Each is listened to from the beginning: on a busy machine one may fail before it is looked at. */
function callsOf(client: EtcdStore, log: EventLog): Ended {
  return Promise.allSettled([
    client.read([recordOf("any").key]),
    client.apply([writeOf(recordOf("any"))]),
    client.apply(["a", "b"].map((name) => writeOf(recordOf(name)))),
    client.list({ tenant: "default", prefix: "", limit: 10 }),
    client.watch({ tenant: null, prefix: "" }, log.listener),
  ]);
}

async function expectStoreErrorsOnly(...calls: readonly Ended[]): Promise<void> {
  for (const ended of (await Promise.all(calls)).flat())
    if (ended.status === "rejected") expect(ended.reason).toBeInstanceOf(StoreError);
}

const TURN = () => new Promise((resolve) => setImmediate(resolve));

const FAULTS: Readonly<Record<string, () => void>> = {
  reset: () => proxy.cut(),
  "frozen and then reset": () => {
    proxy.freeze();
    setImmediate(() => proxy.cut());
  },
  "deprived of its replies": () => proxy.dropReplies(),
  frozen: () => proxy.freeze(),
};

it.each(Object.keys(FAULTS))(
  "a connection that is %s in any state ends its calls, and is made anew",
  async (fault) => {
    store = await open();
    const client = store;
    const log = new EventLog();
    await client.watch({ tenant: null, prefix: "" }, log.listener);
    for (let turns = 0; turns < 6; turns += 1) {
      const calls = callsOf(client, log);
      for (let turn = 0; turn < turns; turn += 1) await TURN();
      FAULTS[fault]!();
      const more = callsOf(client, log);
      await expectStoreErrorsOnly(calls, more);
      proxy.heal();
    }
    const name = `${fault}/after`;
    await until("the store works again", () => client.read([recordOf(name).key]));
    const after = recordOf(name);
    await until("it writes", () => create(client, after));
    await log.write(after.nonce);
  },
);

it.each(Object.keys(FAULTS))(
  "a store that is closed while its connection is %s leaves nothing behind",
  async (fault) => {
    for (let turns = 0; turns < 6; turns += 1) {
      const client = await open();
      const calls = callsOf(client, new EventLog());
      for (let turn = 0; turn < turns; turn += 1) await TURN();
      FAULTS[fault]!();
      await client.close();
      await expectStoreErrorsOnly(calls);
      proxy.heal();
    }
  },
);

/**
 * etcd as the store. It promises what the cluster does: a write that was acknowledged is on the disks of a majority, a
 * conditional write is decided by the key's revision, and a read sees every write before it.
 *
 * etcd shows no clock to its clients, so leases end for others by observation: `capabilities.clock` is "none".
 */
import { realEnv } from "../../env/index.ts";
import { fullCapabilities } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { Cluster } from "./cluster.ts";
import { loadGrpc } from "./grpc.ts";
import { EtcdLayout } from "./layout.ts";
import { type EtcdStore, type EtcdStoreOptions, settingsFrom } from "./options.ts";
import { applyWrites, listPage, readRecords } from "./records.ts";
import { EtcdWatch } from "./watching.ts";

const CAPABILITIES = fullCapabilities({
  durable: true,
  clock: "none",
  // etcd takes 128 operations in a transaction by default; inside it, the three conditions of a write count, too.
  maxBatch: 125,
  // While one batch waits for the disks of the cluster, the next is on its way.
  maxConcurrentCalls: 2,
});

/** Resolves when the cluster has answered a read; rejects with a StoreError that says what to do. */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  const known = "url timeoutMs memberTimeoutMs";
  assertOptions("openEtcdStore", options, '{ url: "etcd://localhost:2379" }', known);
  const settings = settingsFrom(options);
  const env = options.env ?? realEnv;
  const connect = await loadGrpc(settings.tls);
  const layout = new EtcdLayout(settings.prefix);
  const cluster = new Cluster({
    env,
    connect,
    settings,
    range: layout.rangeOf({ tenant: null, prefix: "" }),
  });
  // The first attempt is the only one: a wrong address is reported at once.
  await cluster.connect();
  const access = { cluster, layout };
  return {
    name: "etcd",
    capabilities: CAPABILITIES,
    read: (keys) => readRecords(access, keys),
    apply: (writes) => applyWrites(access, writes),
    list: (query) => listPage(access, query),
    watch: async (scope, listener) => {
      const watch = new EtcdWatch({ ...access, env, scope, listener });
      await watch.begin();
      return watch;
    },
    close: () => cluster.close(),
  };
}

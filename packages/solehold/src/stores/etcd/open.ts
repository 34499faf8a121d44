/** Opening: from a URL to a store that has reached its cluster once. */
import { realEnv } from "../../env/index.ts";
import { assertOptions } from "../support/options.ts";
import { Cluster } from "./cluster.ts";
import { loadGrpc } from "./grpc.ts";
import { EtcdLayout } from "./layout.ts";
import { type EtcdStoreOptions, settingsFrom } from "./options.ts";
import { EtcdStore } from "./store.ts";

/** Resolves when the cluster has answered a read; rejects with a StoreError that says what to do. */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  assertOptions("openEtcdStore", options, '{ url: "etcd://localhost:2379" }');
  const settings = settingsFrom(options);
  const env = options.env ?? realEnv;
  const connect = await loadGrpc(settings.tls);
  const layout = new EtcdLayout(settings.prefix);
  const probe = { ...layout.rangeOf({ tenant: null, prefix: "" }), limit: 1 };
  const cluster = new Cluster({ env, connect, settings, probe });
  try {
    // The first attempt is the only one: a wrong address is reported at once.
    await cluster.connect();
  } catch (error) {
    await cluster.close();
    throw error;
  }
  return new EtcdStore({ env, cluster, layout });
}

/** Opening: from a URL to a store that has reached its cluster once. */
import { realEnv } from "../../env/index.ts";
import { assertOptions } from "../support/options.ts";
import { Calls, RANGE_PATH } from "./calls.ts";
import { assertUsable } from "./grpc.ts";
import { EtcdLayout } from "./layout.ts";
import { Login } from "./login.ts";
import { Members } from "./members.ts";
import { decodeRange, encodeRange } from "./messages.ts";
import { type EtcdStoreOptions, settingsFrom } from "./options.ts";
import { EtcdStore } from "./store.ts";

/** Resolves when the cluster has answered a read; rejects with a StoreError that says what to do. */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  assertOptions("openEtcdStore", options, '{ url: "etcd://localhost:2379" }');
  const { members: addresses, user, tls, prefix, timeoutMs, memberTimeoutMs } = settingsFrom(options);
  const env = options.env ?? realEnv;
  assertUsable(tls);
  const members = new Members({ env, tls, addresses, memberTimeoutMs });
  const login = new Login(user);
  const calls = new Calls({ env, members, login, timeoutMs, memberTimeoutMs });
  const layout = new EtcdLayout(prefix);
  try {
    // The first attempt is the only one: a wrong address is told at once.
    await members.connected();
    const probe = encodeRange({ ...layout.rangeOf({ tenant: null, prefix: "" }), limit: 1 });
    await calls.call({ path: RANGE_PATH, decode: decodeRange }, probe, "not-applied");
  } catch (error) {
    calls.close();
    throw error;
  }
  return new EtcdStore({ env, calls, layout, memberTimeoutMs });
}

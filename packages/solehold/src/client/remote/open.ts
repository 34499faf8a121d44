/** Opens the SDK's manager for the URL of a Solehold server. */
import { realEnv } from "../../env/index.ts";
import type { ConnectOptions } from "../connect.ts";
import { HttpTransport } from "./http-transport.ts";
import { RemoteLeaseManager } from "./remote-manager.ts";

export function openRemoteManager(address: string, options: ConnectOptions): RemoteLeaseManager {
  const { env = realEnv, policy, drift } = options;
  const url = new URL(address);
  // A key in the URL is taken out, so that it appears in no message.
  const apiKey = options.apiKey ?? (url.password || process.env.SOLEHOLD_API_KEY);
  url.username = "";
  url.password = "";
  const transport = new HttpTransport({ url, env, ...(apiKey === undefined ? {} : { apiKey }) });
  return new RemoteLeaseManager({
    transport,
    env,
    ...(policy === undefined ? {} : { policy }),
    ...(drift === undefined ? {} : { drift }),
  });
}

/**
 * Where a server may listen. Anything but loopback is reachable by others, so it needs keys, and keys must
 * not travel in the clear. What would be unsafe refuses to start; there is no flag to insist.
 */
import { isLoopback } from "../access/loopback.ts";
import { ConfigError, type ServerConfig } from "./config.ts";

export function assertSafeBinding(config: ServerConfig, keys: "some" | "none"): void {
  const { host, tlsCert, tlsKey, tlsClientCa, behindProxy } = config;
  if (tlsClientCa !== "" && tlsCert === "")
    throw new ConfigError("--tls-client-ca needs --tls-cert and --tls-key: only TLS has client certificates");
  if ((tlsCert === "") !== (tlsKey === "")) {
    throw new ConfigError("--tls-cert and --tls-key belong together: give both or none");
  }
  if (isLoopback(host)) return;
  if (keys === "none") {
    throw new ConfigError(
      `--host ${host} can be reached by others, and there are no API keys: make one with 'solehold keys add', or listen on 127.0.0.1`,
    );
  }
  if (tlsCert === "" && behindProxy === "no") {
    throw new ConfigError(
      `--host ${host} can be reached by others, and API keys must not travel in the clear: give --tls-cert and --tls-key, or --behind-proxy if a proxy in front ends TLS`,
    );
  }
}

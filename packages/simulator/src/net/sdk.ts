/** The SDK's own executor, replica choice and streams, over simulated connections. */

import type { LeaseExecutor, RemoteRequest, RemoteTransport } from "solehold/internal";
import { RemoteExecutor, ReplicaTransport, StreamTransport } from "solehold/internal";
import type { SimConfig } from "../config.ts";
import type { Mutations } from "../mutations.ts";
import type { SimulatedEnv } from "../world/env.ts";
import { HttpLink } from "./http-link.ts";
import type { ServerAddress, Wire } from "./server-address.ts";
import { openStream } from "./stream-link.ts";

export interface SdkOptions {
  readonly wire: Wire;
  readonly env: SimulatedEnv;
  readonly config: SimConfig;
  readonly mutations: Mutations;
  readonly servers: readonly ServerAddress[];
  /** Everything that this client asks of servers, and what it gave up on. */
  readonly onRequest: (request: RemoteRequest, event: "sent" | "given up") => void;
}

export function simulatedSdk(options: SdkOptions): LeaseExecutor {
  const { env, config, mutations, servers } = options;
  const open = (url: string): RemoteTransport => {
    const server = servers.find((each) => each.url === url);
    if (server === undefined) throw new RangeError(`no server has the address ${url}`);
    return linkTo(options, server);
  };
  const replicas = new ReplicaTransport({ env, seeds: servers.map(({ url }) => url), open });
  const watched = watchedTransport(replicas, options.onRequest);
  return new RemoteExecutor({
    transport: mutations.transport?.(watched, env) ?? watched,
    env,
    policy: { ...config.policy, ...mutations.policy },
    drift: { driftRatio: config.driftRatio, tickMs: config.tickMs },
    commandTimeoutMs: config.commandTimeoutMs,
  });
}

function linkTo({ wire, env, config }: SdkOptions, server: ServerAddress): RemoteTransport {
  const http = new HttpLink({ wire, env, server });
  if (config.connection === "http") return http;
  const connect = () => openStream({ wire, env, server });
  return new StreamTransport({ env, http, where: server.url, connect });
}

function watchedTransport(inner: RemoteTransport, onRequest: SdkOptions["onRequest"]): RemoteTransport {
  return {
    send: async (request) => {
      onRequest(request, "sent");
      try {
        return await inner.send(request);
      } catch (error) {
        onRequest(request, "given up");
        throw error;
      }
    },
    events: (path, onEvent, onEnd) => inner.events(path, onEvent, onEnd),
    close: () => inner.close(),
  };
}

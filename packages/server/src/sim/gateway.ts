/**
 * The real server in the simulated world: its HTTP app, stream, wait queues, watches and membership, over the
 * simulated executor and clocks. Left out: sockets and TLS, API keys and the files that hold them.
 */

import type { Endpoint, EndpointHost, Gateway } from "@solehold/simulator";
import {
  type AuditEvent,
  type AuditTrail,
  LeaseService,
  MemoryAuditTrail,
  MemoryExecutor,
  realEnv,
} from "solehold/internal";
import type { WebSocket } from "ws";
import { Authenticator } from "../access/authenticator.ts";
import { KeyFile } from "../access/key-file.ts";
import { LOCAL_PRINCIPAL } from "../access/principal.ts";
import { composeServer, type ServerComponents } from "../main/compose-server.ts";
import { resolveConfig } from "../main/config.ts";
import { createLog } from "../telemetry/log.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { FanOut } from "../watch/fan-out.ts";
import { AppShell } from "./app-shell.ts";
import { memoryExchange } from "./in-memory-http.ts";

const CONFIG = resolveConfig({ flags: { store: "memory:", audit: "memory", logLevel: "silent" } });
const LOG = createLog("silent");
const MOST_SERVERS = 2;

export function serverGateway(): Gateway {
  let shells: readonly AppShell[] = [];
  return {
    prepare: async () => {
      if (shells.length > 0) return;
      const built = Array.from({ length: MOST_SERVERS }, () => new AppShell(template()));
      for (const { app } of built) await app.ready();
      shells = built;
    },
    serve: (host) => {
      const shell = shells[host.slot];
      if (shell === undefined) throw new RangeError(`at most ${MOST_SERVERS} servers can be simulated`);
      return serve(host, shell);
    },
  };
}

type Life = Pick<EndpointHost, "env" | "service" | "trail">;

function template() {
  const trail = new MemoryAuditTrail({ capacity: 1 });
  const service = new LeaseService({ executor: new MemoryExecutor(), audit: trail, env: realEnv });
  return componentsFor({ env: realEnv, service, trail }, () => false).appOptions;
}

function componentsFor({ env, service, trail }: Life, isDraining: () => boolean): ServerComponents {
  const backend = {
    service,
    audit: auditLog(trail),
    decisions: new FanOut<AuditEvent>(env),
    unshipped: () => 0,
    policyFingerprint: () => "none",
    readPolicy: async () => () => undefined,
    close: async () => undefined,
  };
  return composeServer(CONFIG, backend, {
    env,
    log: LOG,
    metrics: new Metrics(),
    authenticator: new Authenticator({
      ...{
        env,
        keys: new KeyFile("", env),
        required: "with-keys",
        identities: null,
        onReloadFailed: () => undefined,
      },
    }),
    quorum: null,
    tls: null,
    isLeaving: isDraining,
    isDraining,
  });
}

function auditLog(trail: AuditTrail) {
  return {
    trail,
    verify: () => Promise.reject(new Error("a simulated trail is compared with the run instead")),
    lag: () => 0,
    dropped: () => 0,
  };
}

function serve(host: EndpointHost, shell: AppShell): Endpoint {
  let isDraining = false;
  const { appOptions, streams, events, queue, hub, membership } = componentsFor(host, () => isDraining);
  const app = shell.lend(appOptions);
  hub.start().catch(() => undefined);
  streams.watchLives();
  membership.join(new URL(host.url).host, host.url, "simulated");
  return {
    handle: (request, answer) => {
      const exchange = memoryExchange(request, answer);
      app.routing(exchange.request, exchange.response);
      return { hangUp: exchange.hangUp };
    },
    accept: (socket) => streams.open(socket as unknown as WebSocket, LOCAL_PRINCIPAL, ""),
    close: async () => {
      isDraining = true;
      await membership.leave();
      queue.drain();
      events.drain();
      streams.forceClose();
      await hub.close();
    },
  };
}

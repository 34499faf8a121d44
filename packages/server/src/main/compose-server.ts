/** How the components of a server know each other. Nothing here listens, and nothing here decides. */
import { readFileSync } from "node:fs";
import type { Env } from "solehold/internal";
import { type QueueLength, type Quorum, RandomIds, type WaitQueue, withWaitQueue } from "solehold/internal";
import { AccessAudit } from "../access/access-audit.ts";
import type { Authenticator } from "../access/authenticator.ts";
import type { ServerContext } from "../access/context.ts";
import { RateLimiter } from "../access/rate-limit.ts";
import { type SharedLimits, Shares } from "../access/shares.ts";
import { Turns } from "../access/turns.ts";
import { CommandHandler } from "../commands/command-handler.ts";
import type { AppOptions, SecureContext } from "../http/app.ts";
import { dashboardFiles } from "../http/dashboard-files.ts";
import { openApiDocument } from "../http/openapi.ts";
import { Pipelines } from "../http/pipeline.ts";
import { type EventRoute, inTurns, type Route } from "../http/route.ts";
import { auditRoutes, auditWatchRoute } from "../http/routes/audit.ts";
import { acquireAllRoute, commandRoutes } from "../http/routes/commands.ts";
import { coordinatorRoutes } from "../http/routes/coordinator.ts";
import { doctorRoute } from "../http/routes/doctor.ts";
import { explainRoute } from "../http/routes/explain.ts";
import { leaseRoutes } from "../http/routes/leases.ts";
import { maintenanceRoutes } from "../http/routes/maintenance.ts";
import { operationsRoutes } from "../http/routes/operations.ts";
import { overviewRoutes } from "../http/routes/overview.ts";
import { queueRoute } from "../http/routes/queue.ts";
import { replicasRoute } from "../http/routes/replicas.ts";
import { watchRoute } from "../http/routes/watch.ts";
import { Membership } from "../replicas/membership.ts";
import type { StreamServices } from "../stream/connection.ts";
import { StreamServer } from "../stream/server.ts";
import { Activity } from "../telemetry/activity.ts";
import { FailureLog } from "../telemetry/failure-log.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { FanOut } from "../watch/fan-out.ts";
import { EventStreams } from "../watch/sse.ts";
import { WatchHub } from "../watch/watch-hub.ts";
import type { LeaseBackend } from "./backend.ts";
import type { ServerConfig } from "./config.ts";
import { ScheduledCollection } from "./scheduled-collection.ts";

export interface ServerDependencies {
  readonly env: Env;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
  readonly quorum: Quorum | null;
  readonly tls: SecureContext | null;
  /** A shutdown has begun: no more traffic should come. */
  readonly isLeaving: () => boolean;
  /** Nothing new is taken. */
  readonly isDraining: () => boolean;
}

/** Everything but the HTTP framework: a simulated server has these without a socket. */
export interface ServerComponents {
  readonly appOptions: AppOptions;
  readonly accessAudit: AccessAudit;
  readonly streams: StreamServer;
  readonly events: EventStreams;
  readonly queue: WaitQueue;
  readonly hub: WatchHub;
  readonly membership: Membership;
  readonly collection: ScheduledCollection;
  readonly activity: Activity;
}

/** Unsent bytes of one connection: beyond them its events are dropped for a reset, and it is not read from. */
const MAX_BUFFERED_BYTES = 1_048_576;

export const VERSION = versionOf(new URL("../../package.json", import.meta.url));

export function composeServer(
  config: ServerConfig,
  { service, audit, decisions, unshipped }: LeaseBackend,
  dependencies: ServerDependencies,
): ServerComponents {
  const { env, log, metrics, authenticator, quorum, tls, isLeaving, isDraining } = dependencies;
  const { waiterLimit, waitLimitMs, batchLimit, bodyLimitBytes, behindProxy } = config;
  const hub = new WatchHub({ env, service, backlog: config.watchBacklog });
  const queue = withWaitQueue({ env, maxWaiters: waiterLimit, maxWaitMs: waitLimitMs })(hub.layer(service));
  const limiter = new RateLimiter(env, config.requestsPerSecond);
  const accessAudit = new AccessAudit({ env, service, log });
  const limits: SharedLimits = {
    waiters: new Shares("waiters", waiterLimit, config.sharePercent),
    watches: new Shares("watches", config.watchLimit, config.sharePercent),
    connections: new Shares("connections", config.connectionLimit, config.sharePercent),
  };
  const context: ServerContext = {
    ...{ env, log, metrics, authenticator, behindProxy, isDraining, limiter, accessAudit, limits },
    traces: new RandomIds(env, "hex"),
    failures: new FailureLog(env, log),
  };
  const commands = new CommandHandler({ ...context, queue });
  const events = new EventStreams(env);
  const lengths = new FanOut<QueueLength>(env);
  queue.onLength((length) => lengths.publish(length.key.tenant, length));
  const eventRoutes: readonly EventRoute[] = [
    watchRoute({ env, hub, queue, lengths, maxBufferedBytes: MAX_BUFFERED_BYTES }),
    auditWatchRoute(decisions, MAX_BUFFERED_BYTES),
  ];
  const activity = new Activity(env, metrics);
  const startedMs = Math.floor(env.wallMs());
  const turns = new Turns(env);
  const reads = [
    ...leaseRoutes(service, env, () => hub.token).map((route) => inTurns(turns, route)),
    explainRoute(service),
    queueRoute(queue),
  ];
  const { executor } = service;
  const membership = new Membership({ env, executor, log, weight: config.weight });
  const tenants = (): readonly string[] => authenticator.tenants();
  const collection = new ScheduledCollection({
    ...{ env, service, log, metrics, tenants },
    everyMs: config.collectEvery,
  });
  const keysRequired = (): boolean => authenticator.keysRequired;
  let document: string | null = null;
  // As text: anybody may ask for it, again and again.
  const openApi = (): string => {
    const specs = [...routes, ...eventRoutes].map(({ spec }) => spec);
    document ??= JSON.stringify(openApiDocument(specs, VERSION));
    return document;
  };
  const routes: readonly Route[] = [
    ...operationsRoutes({ env, service, metrics, version: VERSION, isLeaving, openApi }),
    ...commandRoutes({ commands, limiter, batchLimit }),
    acquireAllRoute({ commands, limiter, batchLimit }),
    ...reads,
    ...overviewRoutes({
      ...{ service, activity, keysRequired },
      facts: () => ({
        ...{ version: VERSION, startedMs },
        audit: {
          durability: config.audit,
          entries: audit.trail.head().sequence,
          lag: audit.lag(),
          dropped: audit.dropped(),
        },
        counts: {
          liveLeases: service.liveLeases(),
          waiters: queue.size,
          watchers: hub.watchers,
          streams: streams.connections,
        },
      }),
    }),
    ...auditRoutes(service.audit, (heads) => audit.verify(heads)).map((route) => inTurns(turns, route)),
    ...coordinatorRoutes(env, quorum).map((route) => inTurns(turns, route)),
    replicasRoute(membership, service),
    ...maintenanceRoutes(service, metrics),
    doctorRoute(service, env),
  ];
  const pages = dashboardFiles();
  const pipelines = new Pipelines(env);
  const appOptions: AppOptions = {
    ...{ ...context, routes, eventRoutes, events, pipelines, pages, bodyLimitBytes, tls },
  };
  const streams = new StreamServer({
    ...{ ...context, commands, hub, batchLimit },
    pendingLimit: batchLimit + waiterLimit,
    maxBufferedBytes: MAX_BUFFERED_BYTES,
    maxMessageBytes: bodyLimitBytes,
    reads: streamReads(reads),
  });
  metrics.observe({
    waiters: () => queue.size,
    watchers: () => hub.watchers,
    streams: () => streams.connections,
    liveLeases: () => service.liveLeases(),
    auditLag: () => audit.lag(),
    auditDropped: () => audit.dropped(),
    auditUnshipped: unshipped,
    clockJumps: () => service.executor.clockJumps,
  });
  return { appOptions, accessAudit, streams, events, queue, hub, membership, collection, activity };
}

const READ_NAMES: Readonly<Record<string, string>> = {
  getLease: "get",
  listLeases: "list",
  getQueue: "queue",
};

/** What HTTP reads by GET, the stream reads by name: the query's fields are the message's. */
function streamReads(routes: readonly Route[]): StreamServices["reads"] {
  return new Map(
    routes.map(({ spec, run }) => [
      READ_NAMES[spec.operationId] ?? spec.operationId,
      (body, call) => run(undefined, body, call),
    ]),
  );
}

function versionOf(packageFile: URL): string {
  const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };
  return version;
}

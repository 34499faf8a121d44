/**
 * A running server. Everything it is made of is opened in order and closed in the reverse one.
 *
 * Closing drains: nothing new is accepted, waiters are sent elsewhere, what is under way is answered, the audit is
 * made safe, then the store is closed. Connections get `drainMs` and no more, whatever their clients do; the audit and
 * the store get what the disk needs.
 */
import type { AddressInfo, Socket } from "node:net";
import {
  type AuditDetail,
  DEFAULT_TENANT,
  delay,
  type Env,
  type LeaseService,
  realEnv,
  type WaitQueue,
} from "solehold/internal";
import { Authenticator } from "../access/authenticator.ts";
import { type App, buildApp } from "../http/app.ts";
import { createLog, type Logger } from "../telemetry/log.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { announcementOf } from "./announcement.ts";
import { type LeaseBackend, openBackend } from "./backend.ts";
import { assertSafeBinding } from "./binding.ts";
import { composeServer, type ServerComponents, type ServerDependencies, VERSION } from "./compose-server.ts";
import { ConfigError, type ServerConfig } from "./config.ts";
import { readQuorum, readTls } from "./files.ts";

export interface RunningServer {
  readonly url: string;
  readonly service: LeaseService;
  readonly queue: WaitQueue;
  /** Drains and stops. Calling it again waits for the same end. */
  close(): Promise<void>;
}

export interface ServerParts {
  readonly env?: Env;
  readonly log?: Logger;
}

export async function startServer(config: ServerConfig, parts: ServerParts = {}): Promise<RunningServer> {
  const { env = realEnv, log = createLog(config.logLevel) } = parts;
  const onReloadFailed = (error: unknown): void =>
    log.error({ err: error }, "the API keys could not be read again; the known ones stay in force");
  const authenticator = new Authenticator({ env, dataDir: config.dataDir, onReloadFailed });
  await authenticator.start();
  try {
    assertSafeBinding(config, authenticator.keysRequired ? "some" : "none");
    const quorum = await readQuorum(config.quorumFile);
    const tls = await readTls(config);
    const metrics = new Metrics();
    const backend = await openBackend(config, env, metrics);
    const server = new LeaseServer(config, backend, { env, log, metrics, authenticator, quorum, tls });
    await server.open();
    return server;
  } catch (error) {
    authenticator.close();
    throw error;
  }
}

/** How long the connections that were cut may take to be gone; after this the server goes on without them. */
const CUT_MS = 1_000;

class LeaseServer implements RunningServer {
  url = "";
  readonly #config: ServerConfig;
  readonly #backend: LeaseBackend;
  readonly #dependencies: Omit<ServerDependencies, "isDraining" | "url">;
  readonly #components: ServerComponents;
  readonly #app: App;
  readonly #sockets = new Set<Socket>();
  #isDraining = false;
  #closing: Promise<void> | null = null;

  constructor(
    config: ServerConfig,
    backend: LeaseBackend,
    dependencies: Omit<ServerDependencies, "isDraining" | "url">,
  ) {
    this.#config = config;
    this.#backend = backend;
    this.#dependencies = dependencies;
    this.#components = composeServer(config, backend, {
      ...dependencies,
      isDraining: () => this.#isDraining,
      url: () => this.url,
    });
    this.#app = buildApp(this.#components.appOptions);
  }

  get service(): LeaseService {
    return this.#backend.service;
  }

  get queue(): WaitQueue {
    return this.#components.queue;
  }

  async open(): Promise<void> {
    const { streams, hub, activity } = this.#components;
    const { host, port, connectionLimit } = this.#config;
    const { server } = this.#app;
    try {
      await hub.start();
      await activity.start();
      server.maxConnections = connectionLimit;
      server.on("connection", (socket: Socket) => this.#track(socket));
      streams.attach(server);
      await this.#app.listen({ host, port });
    } catch (error) {
      await this.close().catch(() => undefined);
      throw listenError(error, this.#config);
    }
    const { log, tls } = this.#dependencies;
    this.url = urlOf(this.#app, tls === null ? "http" : "https");
    log.info({ url: this.url, store: this.service.executor.store.name, version: VERSION }, "listening");
    await this.#auditStart();
    this.#learnLiveLeases();
    this.#announce();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** Which rights and rules are in force from now on. A trail that cannot take it fails the first command. */
  async #auditStart(): Promise<void> {
    const { accessAudit } = this.#components;
    this.#dependencies.authenticator.onKeyChange((change, key) => accessAudit.keyChanged(change, key));
    const { policyFingerprint: policy } = this.#backend;
    await this.#auditProcess("start", { version: VERSION, policy });
  }

  async #auditProcess(action: string, detail: AuditDetail): Promise<void> {
    await this.#components.accessAudit.process(action, detail).catch((error: unknown) => {
      this.#dependencies.log.error({ err: error, action }, "this could not be written to the audit");
    });
  }

  #announce(): void {
    const { membership, collection } = this.#components;
    const { nodeId, url, obstacle } = announcementOf(this.#config, this.url);
    if (url === null) this.#dependencies.log.warn(`this replica is not announced to clients: ${obstacle}`);
    else membership.join(nodeId, url);
    collection.start(nodeId);
  }

  /** Known from the start, so that leases which end before their first use here are announced too. */
  #learnLiveLeases(): void {
    for (const tenant of new Set([DEFAULT_TENANT, ...this.#dependencies.authenticator.tenants()])) {
      this.service.activeCount(tenant).catch(() => undefined);
    }
  }

  async #close(): Promise<void> {
    const { env, log, authenticator } = this.#dependencies;
    const { drainMs } = this.#config;
    this.#isDraining = true;
    const cut = env.timer(drainMs, () => this.#cutConnections());
    const overdue = new AbortController();
    await Promise.race([this.#drain(), delay(env, drainMs + CUT_MS, overdue.signal)]);
    overdue.abort();
    cut.cancel();
    this.#cutConnections();
    this.#components.activity.close();
    await this.#components.hub.close();
    await this.#auditProcess("stop", {});
    authenticator.close();
    await this.#backend.close();
    log.info("stopped");
  }

  /** Answers what is under way. Clients that do not go are cut off when `drainMs` is over. */
  async #drain(): Promise<void> {
    const { streams, events, queue, membership, collection } = this.#components;
    await Promise.all([membership.leave(), collection.stop()]);
    this.#dependencies.log.info({ waiters: queue.size, streams: streams.connections }, "draining");
    queue.drain();
    events.drain();
    await Promise.all([streams.drain(), this.#app.close()]);
  }

  /** No new ones, and the end of all that are there: also upgraded ones, and those that were refused and do not go. */
  #cutConnections(): void {
    this.#app.close().catch(() => undefined);
    this.#components.streams.forceClose();
    for (const socket of this.#sockets) socket.destroy();
  }
}

function urlOf(app: App, scheme: "http" | "https"): string {
  const { address, port, family } = app.server.address() as AddressInfo;
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

function listenError(error: unknown, { host, port }: ServerConfig): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE")
    return new ConfigError(`--port ${port} is in use on ${host}: choose another one`);
  if (code === "EACCES")
    return new ConfigError(`--port ${port} may not be used by this user: choose one above 1023`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new ConfigError(`--host ${host} is not an address of this machine`);
  }
  return error;
}

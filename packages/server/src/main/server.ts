/**
 * A running server. Everything it is made of is opened in order and closed in the reverse one.
 *
 * Closing first says so, on /readyz, for `drainDelayMs`, while all is served as before: a load balancer has time to see it.
 * Then it drains: nothing new is accepted, waiters are sent elsewhere, what is under way is answered, the audit is
 * made safe, then the store is closed. Connections get `drainMs` and no more, whatever their clients do; the audit and
 * the store get what the disk needs.
 */
import { createHash } from "node:crypto";
import type { AddressInfo, Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import {
  type AuditDetail,
  DEFAULT_TENANT,
  delay,
  type Env,
  type LeaseService,
  realEnv,
  type WaitQueue,
} from "solehold/internal";
import { Addresses } from "../access/addresses.ts";
import { Authenticator } from "../access/authenticator.ts";
import { KeyFile } from "../access/key-file.ts";
import { KeyStore } from "../access/key-store.ts";
import { type App, buildApp } from "../http/app.ts";
import { createLog, type Logger } from "../telemetry/log.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { announcementOf } from "./announcement.ts";
import { reportUncleanEnd } from "./audit-gaps.ts";
import { type LeaseBackend, openBackend } from "./backend.ts";
import { assertSafeBinding } from "./binding.ts";
import { composeServer, type ServerComponents, type ServerDependencies, VERSION } from "./compose-server.ts";
import { ConfigError, type ServerConfig } from "./config.ts";
import { readIdentities, readQuorum, readTls } from "./files.ts";

export interface RunningServer {
  readonly url: string;
  readonly service: LeaseService;
  readonly queue: WaitQueue;
  /** Reads certificates and approval rules again. What cannot be used is logged, and everything stays as it was. */
  reload(): Promise<void>;
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
  const file = new KeyFile(config.dataDir, env);
  const identities = await readIdentities(config.identities, env);
  const required = config.keys === "store" || identities !== null ? "always" : "with-keys";
  await file.assertNotLost();
  const hasKeys = required === "always" || (await file.read()).length > 0;
  assertSafeBinding(config, hasKeys ? "some" : "none");
  const quorum = await readQuorum(config.quorumFile);
  const tls = await readTls(config);
  const metrics = new Metrics();
  const backend = await openBackend(config, { env, log, metrics });
  let server: LeaseServer;
  try {
    const keys = config.keys === "store" ? new KeyStore(backend.service.executor.store, env) : file;
    const authenticator = new Authenticator({ env, keys, required, identities, onReloadFailed });
    await authenticator.start();
    server = new LeaseServer(config, backend, { env, log, metrics, authenticator, quorum, tls });
  } catch (error) {
    await backend.close(async () => undefined).catch(() => undefined);
    throw error;
  }
  await server.open();
  return server;
}

/** How long the connections that were cut may take to be gone; after this the server goes on without them. */
const CUT_MS = 1_000;

const RULES_LENGTH = 16;

class LeaseServer implements RunningServer {
  url = "";
  readonly #config: ServerConfig;
  readonly #backend: LeaseBackend;
  readonly #dependencies: Omit<ServerDependencies, "isLeaving" | "isDraining">;
  readonly #components: ServerComponents;
  readonly #app: App;
  readonly #sockets = new Set<Socket>();
  readonly #addresses: Addresses;
  /** Not ready for more, and still serving. */
  #isLeaving = false;
  #isDraining = false;
  #closing: Promise<void> | null = null;

  constructor(
    config: ServerConfig,
    backend: LeaseBackend,
    dependencies: Omit<ServerDependencies, "isLeaving" | "isDraining">,
  ) {
    this.#config = config;
    this.#backend = backend;
    this.#addresses = new Addresses(config.connectionLimit);
    this.#dependencies = dependencies;
    this.#components = composeServer(config, backend, {
      ...dependencies,
      isLeaving: () => this.#isLeaving,
      isDraining: () => this.#isDraining,
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
      await this.#assertSameRules();
      await hub.start();
      activity.start();
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

  async reload(): Promise<void> {
    const { log } = this.#dependencies;
    try {
      const tls = await readTls(this.#config);
      const usePolicy = await this.#backend.readPolicy();
      if (tls !== null) (this.#app.server as unknown as TlsServer).setSecureContext(tls);
      usePolicy();
    } catch (error) {
      log.error(
        { err: error },
        "certificates and rules could not be read again; the known ones stay in force",
      );
      return;
    }
    const policy = this.#backend.policyFingerprint();
    await this.#auditProcess("reload", { policy });
    log.info({ policy }, "certificates and rules were read again");
    await this.#announceRules();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #track(socket: Socket): void {
    // An offer of another protocol that is ignored brings its connection a second time.
    if (this.#sockets.has(socket)) return;
    const free = this.#isCounted ? this.#addresses.take(socket.remoteAddress ?? "") : () => undefined;
    if (free === null) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      free();
    });
  }

  /** Behind a proxy all connections are the proxy's; without keys all are this user's. */
  get #isCounted(): boolean {
    return this.#config.behindProxy === "no" && this.#dependencies.authenticator.keysRequired;
  }

  /** Which rights and rules are in force from now on. A trail that cannot take it fails the first command. */
  async #auditStart(): Promise<void> {
    const { accessAudit } = this.#components;
    await reportUncleanEnd(this.service, this.#tenants(), this.#dependencies.log).catch((error: unknown) => {
      this.#dependencies.log.error({ err: error }, "what the last process left could not be audited");
    });
    this.#dependencies.authenticator.onKeyChange((change, key) => {
      accessAudit.keyChanged(change, key);
      if (change !== "known") void this.#announceRules();
    });
    await this.#auditProcess("start", { version: VERSION, policy: this.#backend.policyFingerprint() });
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
    membership.join(nodeId, url, this.#rules());
    collection.start(nodeId);
  }

  /** What replicas must agree on, or a request would be granted by one and refused by another. */
  #rules(): string {
    const { keys, leasesPerTenant } = this.#config;
    const { authenticator } = this.#dependencies;
    const rights = authenticator.rights(keys === "store" ? "with those in the store" : "with its own keys");
    const rules = [this.#backend.policyFingerprint(), leasesPerTenant, rights];
    return createHash("sha256").update(JSON.stringify(rules)).digest("base64url").slice(0, RULES_LENGTH);
  }

  async #assertSameRules(): Promise<void> {
    if (this.service.executor.store.list === undefined) return;
    const other = await this.#components.membership.otherRules(this.#rules());
    if (other === null) return;
    throw new ConfigError(
      `the replica ${other} on this store has other approval rules, API keys or leases per tenant: give all the same (--policy-file, --leases-per-tenant, --keys store), or stop the others first`,
    );
  }

  /** Never rejects: a replica that cannot say it now does so when it stands for membership again. */
  async #announceRules(): Promise<void> {
    const { membership } = this.#components;
    await membership.changeRules(this.#rules()).catch(() => undefined);
  }

  /** Known from the start, so that leases which end before their first use here are announced too. */
  #learnLiveLeases(): void {
    for (const tenant of this.#tenants()) this.service.activeCount(tenant).catch(() => undefined);
  }

  /** Those that are known without a request: the default one, and those of keys. */
  #tenants(): readonly string[] {
    return [...new Set([DEFAULT_TENANT, ...this.#dependencies.authenticator.tenants()])];
  }

  async #close(): Promise<void> {
    const { env, log, authenticator } = this.#dependencies;
    const { drainMs, drainDelayMs } = this.#config;
    this.#isLeaving = true;
    if (drainDelayMs > 0) await delay(env, drainDelayMs);
    this.#isDraining = true;
    const cut = env.timer(drainMs, () => this.#cutConnections());
    const overdue = new AbortController();
    await Promise.race([this.#drain(), delay(env, drainMs + CUT_MS, overdue.signal)]);
    overdue.abort();
    cut.cancel();
    this.#cutConnections();
    this.#components.activity.close();
    await this.#components.hub.close();
    authenticator.close();
    await this.#backend.close(() => this.#auditProcess("stop", {}));
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

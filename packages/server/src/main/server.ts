/**
 * A running server. Everything it is made of is opened in order and closed in the reverse one.
 *
 * Closing drains: nothing new is accepted, those who wait are sent elsewhere, what is under way is answered,
 * the audit is made safe, then the store is closed. It takes at most `drainMs` and what the disk needs.
 */
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { DEFAULT_TENANT, type Env, realEnv } from "solehold";
import type { LeaseService, WaitQueue } from "solehold/internal";
import { Gatekeeper } from "../access/authenticator.ts";
import { assertSafeBinding } from "../access/binding.ts";
import type { App } from "../http/app.ts";
import { createLog, type Logger } from "../telemetry/log.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { type Engine, openEngine } from "./backend.ts";
import { VERSION, type Wired, wire } from "./compose-server.ts";
import { ConfigError, type ServerConfig } from "./config.ts";
import { readQuorum } from "./quorum-file.ts";

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
  const gatekeeper = new Gatekeeper({ env, dataDir: config.dataDir, onReloadFailed });
  await gatekeeper.start();
  try {
    assertSafeBinding(config, gatekeeper.keysRequired ? "some" : "none");
    const quorum = await readQuorum(config.quorumFile);
    const tls = await readTls(config);
    const metrics = new Metrics();
    const engine = await openEngine(config, env, metrics);
    const server = new LeaseServer(config, engine, { env, log, gatekeeper });
    const around = { env, log, metrics, gatekeeper, quorum, tls };
    const wired = wire(config, engine, {
      ...around,
      isDraining: () => server.isDraining,
      url: () => server.url,
    });
    await server.open(wired, tls === null ? "http" : "https");
    return server;
  } catch (error) {
    gatekeeper.close();
    throw error;
  }
}

interface Basics {
  readonly env: Env;
  readonly log: Logger;
  readonly gatekeeper: Gatekeeper;
}

class LeaseServer implements RunningServer {
  url = "";
  isDraining = false;
  readonly #config: ServerConfig;
  readonly #engine: Engine;
  readonly #basics: Basics;
  #wired: Wired | null = null;
  #closing: Promise<void> | null = null;

  constructor(config: ServerConfig, engine: Engine, basics: Basics) {
    this.#config = config;
    this.#engine = engine;
    this.#basics = basics;
  }

  get service(): LeaseService {
    return this.#engine.service;
  }

  get queue(): WaitQueue {
    if (this.#wired === null) throw new Error("the server is not open");
    return this.#wired.queue;
  }

  async open(wired: Wired, scheme: "http" | "https"): Promise<void> {
    const { app, streams, hub } = wired;
    const { host, port, connectionLimit } = this.#config;
    this.#wired = wired;
    try {
      await hub.start();
      app.server.maxConnections = connectionLimit;
      streams.attach(app.server);
      await app.listen({ host, port });
    } catch (error) {
      await this.close().catch(() => undefined);
      throw listenError(error, this.#config);
    }
    this.url = urlOf(app, scheme);
    const store = this.service.executor.store.name;
    this.#basics.log.info({ url: this.url, store, version: VERSION }, "listening");
    this.#learnLiveLeases();
    const { nodeId, advertiseUrl } = this.#config;
    const advertised = advertiseUrl === "" ? this.url : advertiseUrl;
    const name = nodeId === "" ? new URL(advertised).host : nodeId;
    wired.membership.join(name, advertised);
    wired.collection.start(name);
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  /** Known from the start, so that leases which end before their first use here are announced too. */
  #learnLiveLeases(): void {
    for (const tenant of new Set([DEFAULT_TENANT, ...this.#basics.gatekeeper.tenants()])) {
      this.service.activeCount(tenant).catch(() => undefined);
    }
  }

  async #drain(): Promise<void> {
    const { env, log, gatekeeper } = this.#basics;
    this.isDraining = true;
    if (this.#wired !== null) await this.#drainConnections(this.#wired, env, log);
    gatekeeper.close();
    await this.#engine.close();
    log.info("stopped");
  }

  async #drainConnections(wired: Wired, env: Env, log: Logger): Promise<void> {
    const { app, streams, events, queue, hub, membership, collection } = wired;
    await Promise.all([membership.leave(), collection.stop()]);
    log.info({ waiters: queue.size, streams: streams.connections }, "draining");
    queue.drain();
    events.drain();
    const force = (): void => {
      streams.forceClose();
      app.server.closeAllConnections();
    };
    const deadline = env.timer(this.#config.drainMs, force);
    await Promise.all([streams.drain(), app.close()]);
    deadline.cancel();
    force();
    await hub.close();
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

async function readTls({ tlsCert, tlsKey }: ServerConfig): Promise<{ cert: string; key: string } | null> {
  if (tlsCert === "") return null;
  try {
    return { cert: await readFile(tlsCert, "utf8"), key: await readFile(tlsKey, "utf8") };
  } catch (cause) {
    throw new ConfigError(`--tls-cert or --tls-key cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/**
 * The NATS client: its packages, loaded when a store is opened, and one connection. The client's own reconnecting is
 * off, because it would send again what it had queued: a connection that ends fails everything on it.
 */
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { loadPackage } from "../support/options.ts";
import type { NatsSettings } from "./options.ts";

export interface NatsPackages {
  readonly transport: typeof import("@nats-io/transport-node");
  readonly jetstream: typeof import("@nats-io/jetstream");
}

export interface NatsClient {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly executor: JetStreamManager;
  readonly newHeaders: () => MsgHdrs;
}

export function loadNats(): Promise<NatsPackages> {
  return loadPackage("nats", "@nats-io/transport-node @nats-io/jetstream", async () => ({
    transport: await import("@nats-io/transport-node"),
    jetstream: await import("@nats-io/jetstream"),
  }));
}

export async function connectNats(packages: NatsPackages, settings: NatsSettings): Promise<NatsClient> {
  const { timeoutMs, connection: options } = settings;
  const connection = await packages.transport.connect({
    name: "solehold",
    ...options,
    reconnect: false,
    waitOnFirstConnect: false,
    timeout: timeoutMs,
    // A stack trace for each request would cost more than the request.
    noAsyncTraces: true,
  });
  // Calls have deadlines of their own, after which they give the connection up: the client's must not come first.
  const jsOptions = { timeout: 2 * timeoutMs, checkAPI: false };
  return {
    connection,
    jetstream: packages.jetstream.jetstream(connection, jsOptions),
    executor: await packages.jetstream.jetstreamManager(connection, jsOptions),
    newHeaders: () => packages.transport.headers(),
  };
}

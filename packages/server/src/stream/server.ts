/** WebSockets at /v1/stream: who may open one, whether its client is still there, and how all of them end. */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Env, ProblemInput, Timer } from "solehold/internal";
import { type WebSocket, WebSocketServer } from "ws";
import type { Principal } from "../access/principal.ts";
import { remoteAddress } from "../access/remote-address.ts";
import { draining, ProblemError } from "../protocol/problem.ts";
import { refuseSocket } from "../protocol/refuse-socket.ts";
import { traceOf } from "../telemetry/trace.ts";
import { StreamConnection, type StreamServices } from "./connection.ts";
import { ignoreUpgrade, isWebSocket } from "./ignore-upgrade.ts";

export const STREAM_PATH = "/v1/stream";

export interface StreamServerOptions extends StreamServices {
  readonly maxMessageBytes: number;
}

/** A connection that has not answered a ping when the next is due is dead: its waiters must leave the queues. */
const PING_EVERY_MS = 15_000;

export class StreamServer {
  readonly #options: StreamServerOptions;
  readonly #sockets: WebSocketServer;
  readonly #connections = new Map<WebSocket, StreamConnection>();
  readonly #silent = new Set<WebSocket>();
  #timer: Timer | null = null;

  constructor(options: StreamServerOptions) {
    this.#options = options;
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: options.maxMessageBytes,
      perMessageDeflate: false,
      // Messages that arrived together are read in turns of their own: other work gets its turn between them.
      allowSynchronousEvents: false,
      // The connection answers pings itself: those that `ws` sends would pile up unread.
      autoPong: false,
      clientTracking: false,
    });
  }

  get connections(): number {
    return this.#connections.size;
  }

  attach(server: Server): void {
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (isWebSocket(request)) void this.#onUpgrade(request, socket, head);
      else ignoreUpgrade(server, request, socket, head);
    });
    this.watchLives();
  }

  /** From now on connections that are silent for too long are ended. */
  watchLives(): void {
    this.#pingLater(this.#options.env);
  }

  /** A stream of a caller that was authenticated. */
  open(socket: WebSocket, principal: Principal, address: string): void {
    const connection = new StreamConnection(this.#options, socket, principal, address);
    this.#connections.set(socket, connection);
    const stop = this.#options.authenticator.onInvalid(principal, () => connection.end());
    socket.on("pong", () => this.#silent.delete(socket));
    socket.on("message", () => this.#silent.delete(socket));
    socket.on("close", () => {
      stop();
      this.#connections.delete(socket);
      this.#silent.delete(socket);
    });
  }

  /** Lets commands under way finish, at most until `forceClose`. */
  async drain(): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection.drain()));
  }

  forceClose(): void {
    this.#timer?.cancel();
    for (const socket of this.#connections.keys()) socket.terminate();
  }

  async #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { env, traces, authenticator, accessAudit, behindProxy, limits, isDraining } = this.#options;
    const address = remoteAddress(request, behindProxy);
    const onError = (): void => void socket.destroy();
    socket.on("error", onError);
    try {
      if (pathOf(request) !== STREAM_PATH) throw new ProblemError(noStreamHere());
      const principal = await authenticator.admit(request);
      if (isDraining()) throw new ProblemError(draining());
      socket.off("error", onError);
      socket.once("close", limits.connections.take(principal));
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) =>
        this.open(webSocket, principal, address),
      );
    } catch (error) {
      const input = error instanceof ProblemError ? error.input : noStreamHere();
      const { traceId } = traceOf(request.headers.traceparent, traces);
      accessAudit.refused(error, { traceId, address }).catch(() => undefined);
      refuseSocket(socket, input, traceId, env);
    }
  }

  #checkLife(socket: WebSocket, connection: StreamConnection): void {
    if (connection.isPaused) this.#silent.delete(socket);
    if (this.#silent.has(socket)) {
      socket.terminate();
      return;
    }
    this.#silent.add(socket);
    socket.ping();
  }

  #pingLater(env: Env): void {
    this.#timer = env.timer(PING_EVERY_MS, () => {
      for (const [socket, connection] of this.#connections) this.#checkLife(socket, connection);
      this.#pingLater(env);
    });
  }
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? "";
}

function noStreamHere(): ProblemInput {
  const detail = `the stream is at ${STREAM_PATH}`;
  return { reason: "ROUTE_NOT_FOUND", detail, facts: { field: "path" } };
}

/**
 * Commands over one WebSocket: those of a turn leave in one message, answers come as they are ready.
 *
 * It is an improvement, never a condition: while there is no stream (the `ws` package is missing, a proxy
 * does not let it through, the server just restarted) requests go over plain HTTP. A command whose
 * connection broke is unknown, like any request whose answer was lost.
 *
 * While answers are awaited the server is asked for a sign of life: one that hangs is given up within
 * moments, so that who waits in its line can queue elsewhere.
 */
import type { Socket } from "node:net";
import type { Env, Timer } from "../../env/index.ts";
import { StoreError } from "../../stores/index.ts";
import {
  type RemoteAnswer,
  type RemoteRequest,
  type RemoteTransport,
  type ServerEvent,
  transportError,
} from "./transport.ts";

/** What is used of a `ws` client. */
export interface StreamSocket {
  on(event: "open" | "close", listener: () => void): void;
  on(event: "message", listener: (data: { toString(): string }) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "upgrade", listener: (response: { readonly socket: Socket }) => void): void;
  send(text: string): void;
  close(): void;
  terminate(): void;
}

export interface StreamTransportOptions {
  readonly env: Env;
  readonly http: RemoteTransport;
  /** For messages: never with a key in it. */
  readonly where: string;
  readonly connect: () => StreamSocket;
}

interface Pending {
  readonly resolve: (answer: RemoteAnswer) => void;
  readonly reject: (error: StoreError) => void;
  readonly timer: Timer;
}

const COMMAND_PATH = "/v1/leases/";
/** After a stream failed, plain HTTP serves for this long before another is tried. */
const RETRY_STREAM_MS = 1_000;
const HEARTBEAT_MS = 1_000;
/** A server that says nothing for this long, although it was asked to, hangs. */
const SILENCE_MS = 3_000;

export class StreamTransport implements RemoteTransport {
  readonly #options: StreamTransportOptions;
  readonly #pending = new Map<number, Pending>();
  #socket: StreamSocket | null = null;
  #tcp: Socket | null = null;
  #isOpen = false;
  #isClosed = false;
  #outgoing: object[] = [];
  #lastId = 0;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  #heardAtMs = 0;
  #heartbeat: Timer | null = null;

  constructor(options: StreamTransportOptions) {
    this.#options = options;
    this.#open();
  }

  send(request: RemoteRequest): Promise<RemoteAnswer> {
    const { method, path } = request;
    this.#open();
    if (!this.#isOpen || method !== "POST" || !path.startsWith(COMMAND_PATH))
      return this.#options.http.send(request);
    return this.#sendOverStream(path.slice(COMMAND_PATH.length), request);
  }

  events(path: string, onEvent: (event: ServerEvent) => void, onEnd: () => void): Promise<{ close(): void }> {
    return this.#options.http.events(path, onEvent, onEnd);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
    this.#options.http.close();
  }

  #sendOverStream(op: string, { body, timeoutMs, signal }: RemoteRequest): Promise<RemoteAnswer> {
    const { env, where } = this.#options;
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const giveUp = (error: StoreError): void => {
        if (!this.#pending.has(id)) return;
        this.#queue({ id: -id, op: "cancel", target: id });
        this.#settle(id)?.reject(error);
      };
      const onAbort = (): void =>
        giveUp(new StoreError("closed", "the caller gave up", { outcome: "unknown" }));
      const silent = (): void =>
        giveUp(
          new StoreError("timeout", `${where} gave no answer within ${Math.round(timeoutMs)} ms`, {
            outcome: "unknown",
          }),
        );
      const done = <Value>(deliver: (value: Value) => void) => {
        return (value: Value): void => {
          signal?.removeEventListener("abort", onAbort);
          deliver(value);
        };
      };
      const timer = env.timer(timeoutMs, silent, { keepAlive: "yes" });
      this.#pending.set(id, { resolve: done(resolve), reject: done(reject), timer });
      signal?.addEventListener("abort", onAbort, { once: true });
      if (this.#pending.size === 1) this.#beginToListen();
      this.#queue({ id, op, ...(body as object) });
    });
  }

  /** All messages of a turn leave as one. */
  #queue(message: object): void {
    this.#outgoing.push(message);
    if (this.#outgoing.length > 1) return;
    this.#options.env.defer(() => {
      const batch = this.#outgoing;
      this.#outgoing = [];
      if (this.#isOpen) this.#socket?.send(JSON.stringify(batch));
    });
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.timer.cancel();
    if (this.#pending.size === 0) {
      this.#heartbeat?.cancel();
      this.#tcp?.unref();
    }
    return pending;
  }

  #beginToListen(): void {
    this.#tcp?.ref();
    this.#heardAtMs = this.#options.env.monotonicMs();
    this.#listen();
  }

  #listen(): void {
    const { env } = this.#options;
    this.#heartbeat?.cancel();
    this.#heartbeat = env.timer(HEARTBEAT_MS, () => {
      if (env.monotonicMs() - this.#heardAtMs >= SILENCE_MS) {
        this.#socket?.terminate();
        return;
      }
      this.#lastId += 1;
      this.#queue({ id: this.#lastId, op: "ping" });
      this.#listen();
    });
  }

  #open(): void {
    const { env } = this.#options;
    if (this.#socket !== null || this.#isClosed || env.monotonicMs() < this.#retryAtMs) return;
    this.#retryAtMs = env.monotonicMs() + RETRY_STREAM_MS;
    const socket = this.#options.connect();
    this.#socket = socket;
    socket.on("upgrade", ({ socket: tcp }) => {
      this.#tcp = tcp;
      tcp.unref();
    });
    socket.on("open", () => {
      if (this.#isClosed) socket.close();
      this.#isOpen = !this.#isClosed;
    });
    socket.on("message", (data) => this.#onMessage(data.toString()));
    socket.on("error", () => socket.terminate());
    socket.on("close", () => this.#onClose());
  }

  #onMessage(text: string): void {
    this.#heardAtMs = this.#options.env.monotonicMs();
    const messages = parseMessages(text);
    for (const { id, status, body, notice } of messages) {
      if (notice === "draining") this.#isOpen = false;
      if (typeof id !== "number" || typeof status !== "number") continue;
      this.#settle(id)?.resolve({ status, body });
    }
  }

  #onClose(): void {
    this.#socket = null;
    this.#isOpen = false;
    this.#tcp = null;
    for (const id of [...this.#pending.keys()]) {
      this.#settle(id)?.reject(transportError(new Error("the stream closed"), this.#options.where));
    }
  }
}

interface StreamMessage {
  readonly id?: unknown;
  readonly status?: unknown;
  readonly body?: unknown;
  readonly notice?: unknown;
}

function parseMessages(text: string): readonly StreamMessage[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return (Array.isArray(parsed) ? parsed : [parsed]) as readonly StreamMessage[];
  } catch {
    return [];
  }
}

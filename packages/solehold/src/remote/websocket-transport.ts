/**
 * Commands over one WebSocket: those of a turn leave in one message, answers come as they are ready.
 *
 * It is an improvement, never a condition: while there is no stream (the `ws` package is missing, a proxy
 * does not let it through, the server just restarted) requests go over plain HTTP. A command whose
 * connection broke is unknown, like any request whose answer was lost.
 *
 * While answers are awaited the server is asked for a sign of life: one that hangs is given up within
 * moments, so that its waiting clients can queue elsewhere.
 */
import type { Socket } from "node:net";
import type { Env } from "../env/index.ts";
import { StoreError } from "../store/index.ts";
import { Alarm } from "../support/alarm.ts";
import { encodeOperation, type Fields, joinMessages, parseMessages, type SseEvent } from "../wire/index.ts";
import { type RemoteAnswer, type RemoteRequest, type RemoteTransport, transportError } from "./transport.ts";

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

interface PendingRequest {
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly resolve: (answer: RemoteAnswer) => void;
  readonly reject: (error: StoreError) => void;
  /** Ends its interest in the caller's signal; null without one. */
  readonly stopListening: (() => void) | null;
}

const COMMAND_PATH = "/v1/leases/";
/** After a stream failed, plain HTTP serves for this long before another is tried. */
const RETRY_STREAM_MS = 1_000;
const HEARTBEAT_MS = 1_000;
/** A server that says nothing for this long, although it was asked to, hangs. */
const SILENCE_MS = 3_000;
/** A server gives its other clients their turn between two messages: none may be so long that it matters. */
const COMMANDS_PER_MESSAGE = 64;

export class StreamTransport implements RemoteTransport {
  readonly #options: StreamTransportOptions;
  /** Those without an answer yet, by id. */
  readonly #pending = new Map<number, PendingRequest>();
  #socket: StreamSocket | null = null;
  #tcp: Socket | null = null;
  #isOpen = false;
  #isClosed = false;
  /** Encoded messages, until the turn ends. */
  #outgoing: string[] = [];
  #lastId = 0;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  #lastMessageAtMs = 0;
  #pingAtMs = 0;
  /** For the pings, and for the deadlines of all who wait. */
  readonly #alarm: Alarm;

  constructor(options: StreamTransportOptions) {
    this.#options = options;
    this.#alarm = new Alarm(options.env, () => this.#onAlarm(), { keepAlive: true });
    this.#open();
  }

  send(request: RemoteRequest): Promise<RemoteAnswer> {
    const { method, path } = request;
    this.#open();
    if (!this.#isOpen || method !== "POST" || !path.startsWith(COMMAND_PATH))
      return this.#options.http.send(request);
    return this.#sendOverStream(path.slice(COMMAND_PATH.length), request);
  }

  events(path: string, onEvent: (event: SseEvent) => void, onEnd: () => void): Promise<{ close(): void }> {
    return this.#options.http.events(path, onEvent, onEnd);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
    this.#options.http.close();
  }

  #sendOverStream(op: string, { body, timeoutMs, signal }: RemoteRequest): Promise<RemoteAnswer> {
    this.#lastId += 1;
    const id = this.#lastId;
    const nowMs = this.#options.env.monotonicMs();
    return new Promise((resolve, reject) => {
      const stopListening = signal === undefined ? null : this.#listenTo(signal, id);
      const deadlineMs = nowMs + timeoutMs;
      this.#pending.set(id, { deadlineMs, timeoutMs, resolve, reject, stopListening });
      if (this.#pending.size === 1) this.#expectAnswers(nowMs);
      this.#alarm.setBy(deadlineMs);
      this.#queue(encodeOperation(id, op, body as object));
    });
  }

  #listenTo(signal: AbortSignal, id: number): () => void {
    const onAbort = (): void =>
      this.#giveUp(id, new StoreError("closed", "the caller gave up", { outcome: "unknown" }));
    signal.addEventListener("abort", onAbort, { once: true });
    return () => signal.removeEventListener("abort", onAbort);
  }

  #giveUp(id: number, error: StoreError): void {
    if (!this.#pending.has(id)) return;
    this.#queue(encodeOperation(-id, "cancel", { target: id }));
    this.#settle(id)?.reject(error);
  }

  /** All messages of a turn leave together. */
  #queue(message: string): void {
    this.#outgoing.push(message);
    if (this.#outgoing.length > 1) return;
    this.#options.env.defer(() => {
      const batch = this.#outgoing;
      this.#outgoing = [];
      if (!this.#isOpen) return;
      for (let start = 0; start < batch.length; start += COMMANDS_PER_MESSAGE) {
        this.#socket?.send(joinMessages(batch.slice(start, start + COMMANDS_PER_MESSAGE)));
      }
    });
  }

  /** Undefined when it was settled before, or never asked. */
  #settle(id: number): PendingRequest | undefined {
    const pending = this.#pending.get(id);
    if (pending === undefined) return undefined;
    this.#pending.delete(id);
    pending.stopListening?.();
    if (this.#pending.size === 0) {
      this.#alarm.cancel();
      this.#tcp?.unref();
    }
    return pending;
  }

  #expectAnswers(nowMs: number): void {
    this.#tcp?.ref();
    this.#lastMessageAtMs = nowMs;
    this.#pingAtMs = nowMs + HEARTBEAT_MS;
    this.#alarm.setBy(this.#pingAtMs);
  }

  #onAlarm(): void {
    const { env, where } = this.#options;
    const nowMs = env.monotonicMs();
    for (const [id, { deadlineMs, timeoutMs }] of this.#pending) {
      if (deadlineMs > nowMs) continue;
      const message = `${where} gave no answer within ${Math.round(timeoutMs)} ms`;
      this.#giveUp(id, new StoreError("timeout", message, { outcome: "unknown" }));
    }
    if (this.#pending.size === 0) return;
    if (nowMs >= this.#pingAtMs) {
      if (nowMs - this.#lastMessageAtMs >= SILENCE_MS) {
        this.#socket?.terminate();
        return;
      }
      this.#lastId += 1;
      this.#queue(encodeOperation(this.#lastId, "ping", {}));
      this.#pingAtMs = nowMs + HEARTBEAT_MS;
    }
    this.#alarm.setBy(this.#pingAtMs);
    for (const { deadlineMs } of this.#pending.values()) this.#alarm.setBy(deadlineMs);
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
    this.#lastMessageAtMs = this.#options.env.monotonicMs();
    for (const message of parseMessages(text) ?? []) {
      const { id, status, body, notice } = (message ?? {}) as Fields;
      if (notice === "draining") this.#isOpen = false;
      this.#answered(id, status, body);
    }
  }

  #answered(id: unknown, status: unknown, body: unknown): void {
    if (typeof id !== "number" || typeof status !== "number") return;
    this.#settle(id)?.resolve({ status, body });
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

/**
 * One stream: commands in, answers out, many at a time. Answers come as they are ready, not in the order of
 * the messages.
 *
 * Bounded in both directions: a client with too many commands under way, or that does not read its answers,
 * is not read from until it catches up. Answers are never dropped; watch events may be, and then a "reset" says so.
 */
import type { LeaseOp } from "solehold/internal";
import {
  bodyOfMessage,
  type Envelope,
  encodeProblem,
  type MessageId,
  readEnvelope,
  type WireAnswer,
} from "solehold/internal";
import { Type } from "typebox";
import type { WebSocket } from "ws";
import type { Call } from "../access/call.ts";
import { answerToError, type ServerContext } from "../access/context.ts";
import type { Principal } from "../access/principal.ts";
import { COMMAND_SCHEMAS, type CommandHandler } from "../commands/command-handler.ts";
import { draining, ProblemError, problemOf, refusal } from "../protocol/problem.ts";
import { Closed } from "../protocol/schemas/kinds.ts";
import { checkOf } from "../protocol/validation.ts";
import { traceOf } from "../telemetry/trace.ts";
import type { WatchHub } from "../watch/watch-hub.ts";
import { type ConnectionState, StreamOperation } from "./operation.ts";
import { Outgoing } from "./outgoing.ts";
import { Received } from "./received.ts";
import { StreamWatches } from "./watches.ts";

export interface StreamServices extends ServerContext {
  readonly commands: CommandHandler;
  readonly hub: WatchHub;
  readonly batchLimit: number;
  /** More operations without an answer than this, and the client is not read from. Those that wait count. */
  readonly pendingLimit: number;
  readonly maxBufferedBytes: number;
  /** Reading operations that HTTP offers too: get, list, queue. */
  readonly reads: ReadonlyMap<string, (body: unknown, call: Call) => Promise<WireAnswer>>;
}

/** `unwatch` ends a watch, `cancel` a wait: both name the message that began it. */
const checkTarget = checkOf(Closed({ target: Type.Union([Type.String(), Type.Integer()]) }), "body");
const checkEmpty = checkOf(Closed({}), "body");
const COMMANDS: ReadonlySet<string> = new Set(Object.keys(COMMAND_SCHEMAS));
/** Operations that concern the connection itself. */
const CONTROL_OPERATIONS: ReadonlySet<string> = new Set(["watch", "unwatch", "cancel", "ping"]);
/**
 * More than these are not begun at once, unless they came in one message: what waits unread costs nothing, and what
 * waits as objects is moved about by the garbage collector again and again.
 */
const MOST_AT_ONCE = 512;
/** The code of RFC 6455's registry for "come back in a moment". */
const SERVICE_RESTART = 1012;
/** "Policy violation" there. */
const NOT_VALID = 1008;
/** How long a client has to answer the end before its connection is cut. */
const GRACE_MS = 1_000;

/** What operations read of their connection. */
interface MutableState extends ConnectionState {
  isClosed: boolean;
}

export class StreamConnection {
  readonly #services: StreamServices;
  readonly #socket: WebSocket;
  readonly #pending = new Map<MessageId, StreamOperation>();
  readonly #watches: StreamWatches;
  readonly #received: Received;
  readonly #outgoing: Outgoing;
  /** Of those pending, those that do not wait for a lease. */
  #atOnce = 0;
  #isReadingPaused = false;
  readonly #state: MutableState;
  /** Set while the connection drains. */
  #onIdle: (() => void) | null = null;

  constructor(services: StreamServices, socket: WebSocket, principal: Principal, address: string) {
    this.#services = services;
    this.#socket = socket;
    this.#state = { principal, address, isClosed: false };
    const { env, hub, maxBufferedBytes, limits, batchLimit } = services;
    const onChange = (): void => this.#applyBackpressure();
    this.#outgoing = new Outgoing({ env, socket, maxBufferedBytes, onChange });
    this.#received = new Received({
      env,
      batchLimit,
      begin: (operation, receivedMs) => this.#receive(operation, receivedMs),
      refuse: (message) => this.#refuse(null, "message", message),
      onChange: () => {
        if (this.#isIdle()) this.#onIdle?.();
        this.#applyBackpressure();
      },
    });
    this.#watches = new StreamWatches({
      env,
      hub,
      shares: limits.watches,
      maxBufferedBytes,
      buffered: () => socket.bufferedAmount,
      send: (watch, event) => this.#outgoing.send({ watch, event }),
    });
    socket.on("message", (data, isBinary) => {
      if (!this.#state.isClosed) this.#received.add(isBinary ? "" : String(data));
    });
    socket.on("ping", (data) => this.#outgoing.answerPing(data));
    socket.on("close", () => this.#onClose());
    socket.on("error", () => socket.terminate());
  }

  /** It is the server that does not read at the moment: a client that has taken all cannot be blamed for its silence. */
  get isPaused(): boolean {
    return this.#isReadingPaused && this.#socket.bufferedAmount === 0;
  }

  /** No more commands are taken; those under way are answered, then the client is sent elsewhere. */
  async drain(): Promise<void> {
    // What was received before is under way, whether it has begun or not.
    this.#received.beginAll();
    this.#outgoing.send({ notice: "draining" });
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      if (this.#isIdle() || this.#state.isClosed) resolve();
    });
    if (this.#state.isClosed) return;
    this.#outgoing.flush();
    // What was sent has arrived only when the client has answered the goodbye.
    const closed = new Promise<void>((resolve) => void this.#socket.once("close", () => resolve()));
    this.#socket.close(SERVICE_RESTART, "the server is shutting down");
    await closed;
  }

  /** The API key was revoked, expired or changed: nothing more is taken, sent or granted here. */
  end(): void {
    // Cancelled, not only cut off: nobody may come back for what is granted meanwhile.
    for (const pending of [...this.#pending.values()]) pending.cancel();
    this.#onClose();
    const grace = this.#services.env.timer(GRACE_MS, () => this.#socket.terminate());
    this.#socket.once("close", () => grace.cancel());
    this.#socket.close(NOT_VALID, "the API key was revoked, expired or changed: connect again");
  }

  #receive(message: unknown, receivedMs: number): void {
    const reading = readEnvelope(message);
    if (!reading.ok) {
      this.#refuse(reading.id, reading.field, reading.message);
    } else if (this.#isInUse(reading.id)) {
      // Answered without the id: with it, the answer would be taken for that of the message in progress.
      const message = `${JSON.stringify(reading.id)} is in use by another message or watch`;
      this.#refuse(null, "id", message);
    } else {
      this.#answer(reading, receivedMs);
    }
  }

  #isInUse(id: MessageId): boolean {
    return this.#pending.has(id) || this.#watches.has(id);
  }

  #answer(envelope: Envelope, receivedMs: number): void {
    const route = this.#routeOf(envelope.op);
    const operation = new StreamOperation(this.#services, route, envelope, receivedMs, this.#state);
    this.#pending.set(envelope.id, operation);
    if (!operation.mayWait) this.#atOnce += 1;
    this.#run(envelope, operation)
      .catch((error: unknown) => answerToError(this.#services, error, operation))
      .then((answer) => this.#finish(operation, answer));
  }

  #finish(operation: StreamOperation, answer: WireAnswer): void {
    const { id, op, mayWait } = operation;
    const { status, body } = answer;
    this.#pending.delete(id);
    if (!mayWait) this.#atOnce -= 1;
    operation.answered(status);
    this.#outgoing.send({ id, status, body }, operation.whenTaken);
    // Events follow the answer that announces them.
    if (op === "watch") this.#watches.begin(id);
    if (this.#isIdle()) this.#onIdle?.();
    if (this.#isReadingPaused) this.#applyBackpressure();
  }

  /** For the meters: what is not an operation must not make a series of its own. */
  #routeOf(op: string): string {
    const isKnown = COMMANDS.has(op) || CONTROL_OPERATIONS.has(op) || this.#services.reads.has(op);
    return isKnown ? `stream ${op}` : "stream unknown";
  }

  /** Rejects with what is answered as a problem. */
  async #run({ id, op, message }: Envelope, operation: StreamOperation): Promise<WireAnswer> {
    const { commands, limiter, reads } = this.#services;
    if (this.#onIdle !== null) throw new ProblemError(draining());
    limiter.take(operation.principal.id, 1, operation.receivedMs);
    const body = bodyOfMessage(message);
    if (COMMANDS.has(op)) return await commands.execute(op as LeaseOp, body, operation);
    const read = reads.get(op);
    return read === undefined ? this.#control(id, op, body) : await read(body, operation);
  }

  #control(id: MessageId, op: string, body: object): WireAnswer {
    switch (op) {
      case "watch":
        return { status: 200, body: { token: this.#watches.open(id, body, this.#state.principal) } };
      case "unwatch":
        return { status: 200, body: { ended: this.#watches.end(checkTarget(body).target) } };
      case "cancel":
        return { status: 200, body: { ended: this.#cancel(checkTarget(body).target) } };
      case "ping":
        checkEmpty(body);
        return { status: 200, body: {} };
      default:
        throw new ProblemError(refusal("op", `is not an operation: use ${this.#operations()}`));
    }
  }

  #operations(): string {
    return [...COMMANDS, ...this.#services.reads.keys(), ...CONTROL_OPERATIONS].join(", ");
  }

  #cancel(target: MessageId): boolean {
    const pending = this.#pending.get(target);
    pending?.cancel();
    return pending !== undefined;
  }

  /** What is no operation counts against the rate as one does: answering it costs as much. */
  #refuse(id: MessageId | null, field: string, message: string): void {
    const { traces, limiter } = this.#services;
    const { traceId } = traceOf(undefined, traces);
    let input = refusal(field, message);
    try {
      limiter.take(this.#state.principal.id, 1);
    } catch (error) {
      input = problemOf(error);
    }
    this.#outgoing.send({ id, ...encodeProblem(input, traceId) });
  }

  /** Stops and resumes reading: what has been taken on is bounded, and so is what waits to be sent. */
  #applyBackpressure(): void {
    const taken = this.#pending.size + this.#received.size;
    const isTooMuch =
      this.#atOnce + this.#received.size > MOST_AT_ONCE || taken > this.#services.pendingLimit;
    const isFull = isTooMuch || this.#outgoing.isUnread;
    if (isFull === this.#isReadingPaused || this.#state.isClosed) return;
    this.#isReadingPaused = isFull;
    if (isFull) this.#socket.pause();
    else this.#socket.resume();
  }

  #isIdle(): boolean {
    return this.#pending.size === 0 && this.#received.size === 0;
  }

  #onClose(): void {
    if (this.#state.isClosed) return;
    this.#state.isClosed = true;
    this.#onIdle?.();
    for (const pending of [...this.#pending.values()]) pending.disconnect();
    this.#watches.endAll();
    this.#received.clear();
    this.#outgoing.close();
  }
}

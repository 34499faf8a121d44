/**
 * One operation of a stream that has no answer yet: to the rest of the server the call it serves, somebody who may
 * go away, and where its answer goes. One object for all of that, since there is one for every command.
 */
import type { Principal } from "../access/principal.ts";
import type { Call, Connection } from "../commands/call.ts";
import type { AnswerSink } from "../commands/command-handler.ts";
import type { Answer } from "../protocol/response-codec.ts";
import type { RequestSpan } from "../telemetry/spans.ts";
import type { Envelope, MessageId } from "./messages.ts";

/** The connection that it came by. */
export interface Line {
  readonly principal: Principal;
  readonly isClosed: boolean;
  /** How the client wants to be answered. */
  readonly answers: "full" | "brief";
  finish(operation: StreamOperation, answer: Answer): void;
  fail(operation: StreamOperation, error: unknown): void;
}

export class StreamOperation implements Call, Connection, AnswerSink {
  readonly id: MessageId;
  readonly op: string;
  /** For the meters. */
  readonly route: string;
  readonly traceId: string;
  readonly span: RequestSpan;
  readonly receivedMs: number;
  /** Waits in line if it has to: then it may take long. */
  readonly mayWait: boolean;
  readonly #line: Line;
  /** Few ever wait: most are answered before anybody asks to be told. */
  #listeners: Set<() => void> | null = null;
  #cancelled = false;

  constructor(
    line: Line,
    { id, op, message }: Envelope,
    route: string,
    traceId: string,
    span: RequestSpan,
    receivedMs: number,
  ) {
    this.#line = line;
    this.id = id;
    this.op = op;
    this.route = route;
    this.traceId = traceId;
    this.span = span;
    this.receivedMs = receivedMs;
    this.mayWait = op === "acquire" && "waitMs" in message && message.waitMs !== 0;
  }

  get principal(): Principal {
    return this.#line.principal;
  }

  get answers(): "full" | "brief" {
    return this.#line.answers;
  }

  get connection(): Connection {
    return this;
  }

  answered(answer: Answer): void {
    this.#line.finish(this, answer);
  }

  failed(error: unknown): void {
    this.#line.fail(this, error);
  }

  isGone(): boolean {
    return this.#cancelled || this.#line.isClosed;
  }

  isCancelled(): boolean {
    return this.#cancelled;
  }

  onGone(listener: () => void): () => void {
    const listeners = this.#listeners ?? new Set();
    this.#listeners = listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** The connection was closed. */
  disconnect(): void {
    for (const listener of [...(this.#listeners ?? [])]) listener();
  }

  /** The client does not want the answer any more. */
  cancel(): void {
    this.#cancelled = true;
    this.disconnect();
  }
}

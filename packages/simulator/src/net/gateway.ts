/**
 * Lease servers in the simulated world. The server is a package of its own, above this one; it brings its
 * handlers in through this port, without sockets: one request and one answer at a time, and streams.
 * Everything between the client and these handlers (delays, losses, broken connections) is simulated here.
 */
import type { EventEmitter } from "node:events";
import type { AuditTrail, Env, LeaseService } from "solehold/internal";

export interface Gateway {
  /** Loads and builds what takes real time; called before a run. */
  prepare(): Promise<void>;
  /** A server process comes up. */
  serve(host: EndpointHost): Endpoint;
}

export interface EndpointHost {
  /** Which of the run's servers it is, from 0. A slot is taken again when a dead server is followed by another. */
  readonly slot: number;
  readonly url: string;
  readonly env: Env;
  readonly service: LeaseService;
  readonly trail: AuditTrail;
}

export interface HttpRequestText {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body: string | null;
}

export interface HttpAnswerText {
  readonly status: number;
  readonly body: string;
}

/** A running server, as the network reaches it. */
export interface Endpoint {
  /** Answers at most once; never after its process died. Returns how to tell it that the client hung up. */
  handle(request: HttpRequestText, answer: (given: HttpAnswerText) => void): { hangUp(): void };
  /** A client opened a stream. */
  accept(socket: ServerSocket): void;
  /** Ends waits, watches and streams, as a server does when it stops. */
  close(): Promise<void>;
}

/** The server's end of a stream: emits "message" with a Buffer and a flag, "pong" and "close". */
export interface ServerSocket extends EventEmitter {
  readonly bufferedAmount: number;
  send(text: string, done?: () => void): void;
  close(): void;
  terminate(): void;
  ping(): void;
  pause(): void;
  resume(): void;
}

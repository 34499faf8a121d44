/** One HTTP request: the call that the rest of the server sees, and its connection. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Call, Connection } from "../access/call.ts";
import type { ServerContext } from "../access/context.ts";
import { LOCAL_PRINCIPAL, type Principal } from "../access/principal.ts";
import { remoteAddress } from "../access/remote-address.ts";
import { type RequestSpan, startSpan } from "../telemetry/spans.ts";
import { traceOf } from "../telemetry/trace.ts";

/** A client has as long to take an answer that others wait for. */
const TAKE_TIMEOUT_MS = 30_000;

export class HttpCall implements Call, Connection {
  readonly traceId: string;
  readonly address: string;
  readonly span: RequestSpan;
  readonly receivedMs: number;
  /** Set when the request is let in. */
  principal: Principal = LOCAL_PRINCIPAL;
  waitedMs = 0;
  readonly #context: ServerContext;
  readonly #response: FastifyReply["raw"];

  constructor(context: ServerContext, request: FastifyRequest, { raw }: FastifyReply) {
    const { env, traces, behindProxy } = context;
    const trace = traceOf(request.headers.traceparent, traces);
    this.traceId = trace.traceId;
    this.address = remoteAddress(request.raw, behindProxy);
    this.span = startSpan(routeName(request), trace, env);
    this.receivedMs = env.monotonicMs();
    this.#context = context;
    this.#response = raw;
  }

  get connection(): Connection {
    return this;
  }

  /** A caller whose API key is no longer valid counts as gone: nothing is granted to it any more. */
  isGone(): boolean {
    const { destroyed, writableFinished } = this.#response;
    return (destroyed && !writableFinished) || this.isCancelled();
  }

  isCancelled(): boolean {
    return !this.#context.authenticator.isCurrent(this.principal);
  }

  onGone(listener: () => void): () => void {
    const onClose = (): void => {
      if (this.isGone()) listener();
    };
    this.#response.on("close", onClose);
    const stop = this.#context.authenticator.onInvalid(this.principal, listener);
    return () => {
      this.#response.off("close", onClose);
      stop();
    };
  }

  onTaken(listener: () => void): void {
    if (this.#response.destroyed) {
      listener();
      return;
    }
    const tooLate = this.#context.env.timer(TAKE_TIMEOUT_MS, () => this.#response.destroy());
    this.#response.once("close", () => {
      tooLate.cancel();
      listener();
    });
  }
}

export function routeName({ method, routeOptions }: FastifyRequest): string {
  return routeOptions?.url === undefined ? "unknown" : `${method} ${routeOptions.url}`;
}

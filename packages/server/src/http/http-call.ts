/** One HTTP request: the call that the rest of the server sees. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Call } from "../access/call.ts";
import type { ServerContext } from "../access/context.ts";
import { LOCAL_PRINCIPAL, type Principal } from "../access/principal.ts";
import { remoteAddress } from "../access/remote-address.ts";
import { MeteredRequest } from "../telemetry/metered-request.ts";

/** A client has as long to take an answer that others wait for. */
const TAKE_TIMEOUT_MS = 30_000;

export class HttpCall extends MeteredRequest implements Call {
  readonly address: string;
  /** Set when the request is let in. */
  principal: Principal = LOCAL_PRINCIPAL;
  readonly #context: ServerContext;
  readonly #response: FastifyReply["raw"];

  constructor(context: ServerContext, request: FastifyRequest, { raw }: FastifyReply) {
    super(context, routeName(request), request.headers.traceparent);
    this.address = remoteAddress(request.raw, context.behindProxy);
    this.#context = context;
    this.#response = raw;
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

function routeName({ method, routeOptions }: FastifyRequest): string {
  return routeOptions?.url === undefined ? "unknown" : `${method} ${routeOptions.url}`;
}

/**
 * The HTTP side: routes to answers. It promises that every answer that is not a success is a problem
 * document, that a connection that went away is noticed, and that nothing a client sends ends in a 5xx
 * unless the store is down.
 */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { type Env, StoreError } from "solehold";
import { LOCAL_PRINCIPAL } from "./access/principal.ts";
import type { Call, Connection } from "./call.ts";
import { ProblemError, type ProblemInput, refusal, retryAfterSeconds } from "./problem.ts";
import type { Route } from "./route.ts";
import { newSpanId, type Trace, traceOf, traceparent } from "./trace.ts";
import { type Answer, problemAnswer } from "./wire.ts";

export interface AppOptions {
  readonly env: Env;
  readonly routes: readonly Route[];
  readonly bodyLimitBytes: number;
}

export type App = FastifyInstance;

interface Arrival {
  readonly trace: Trace;
  readonly receivedMs: number;
}

const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const JSON_TYPE = "application/json; charset=utf-8";

export function buildApp({ env, routes, bodyLimitBytes }: AppOptions): App {
  const app: App = Fastify({
    bodyLimit: bodyLimitBytes,
    disableRequestLogging: true,
    exposeHeadRoutes: false,
  });
  const arrivals = new WeakMap<FastifyRequest, Arrival>();
  const arrivalOf = (request: FastifyRequest): Arrival => {
    const known = arrivals.get(request);
    if (known !== undefined) return known;
    const arrival = { trace: traceOf(request.headers.traceparent, env), receivedMs: env.monotonicMs() };
    arrivals.set(request, arrival);
    return arrival;
  };

  app.addHook("onRequest", async (request, reply) => {
    const { trace } = arrivalOf(request);
    reply.header("traceparent", traceparent(trace, newSpanId(env)));
  });

  for (const route of routes) {
    const { method, path } = route.spec;
    app.route({
      method,
      url: path,
      handler: async (request, reply) => {
        const { trace, receivedMs } = arrivalOf(request);
        const connection = connectionOf(reply);
        const call: Call = { principal: LOCAL_PRINCIPAL, traceId: trace.traceId, receivedMs, connection };
        return send(reply, await route.run(request.body, request.query, call));
      },
    });
  }

  app.setNotFoundHandler((request, reply) =>
    send(reply, problemAnswer(notFound(request.method), arrivalOf(request).trace.traceId)),
  );
  app.setErrorHandler((error, request, reply) =>
    send(reply, problemAnswer(problemOf(error), arrivalOf(request).trace.traceId)),
  );
  return app;
}

function send(reply: FastifyReply, { status, body }: Answer): FastifyReply {
  const { retryAfterMs } = body as { retryAfterMs?: number };
  if (status >= 400 && retryAfterMs !== undefined)
    reply.header("retry-after", retryAfterSeconds(retryAfterMs));
  return reply
    .code(status)
    .type(status >= 400 ? PROBLEM_TYPE : JSON_TYPE)
    .send(JSON.stringify(body));
}

function connectionOf(reply: FastifyReply): Connection {
  const { raw } = reply;
  return {
    isGone: () => raw.destroyed && !raw.writableFinished,
    onGone: (listener) => {
      const onClose = (): void => {
        if (!raw.writableFinished) listener();
      };
      raw.on("close", onClose);
      return () => void raw.off("close", onClose);
    },
  };
}

function notFound(method: string): ProblemInput {
  return {
    status: 404,
    reason: "ROUTE_NOT_FOUND",
    code: "LS_INVALID",
    detail: `there is no such route for ${method}: see /openapi.json`,
    facts: { field: "path" },
  };
}

function problemOf(error: unknown): ProblemInput {
  if (error instanceof ProblemError) return error.input;
  if (error instanceof StoreError) {
    const facts = { outcome: "not-applied", storeError: error.kind, retryAfterMs: 1_000 } as const;
    const detail = "the store cannot be reached: try again";
    return { status: 503, reason: "STORE_UNAVAILABLE", code: "LS_UNAVAILABLE", detail, facts };
  }
  const { statusCode = 500, code = "" } = error as { statusCode?: number; code?: string };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const detail = "body is larger than this server accepts: send several requests";
    return { status: 413, reason: "BODY_TOO_LARGE", code: "LS_INVALID", detail, facts: { field: "body" } };
  }
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    const detail = "content-type must be application/json";
    const facts = { field: "content-type" };
    return { status: 415, reason: "MEDIA_TYPE_UNSUPPORTED", code: "LS_INVALID", detail, facts };
  }
  if (statusCode < 500) return refusal("body", "must be a JSON object");
  return {
    status: 500,
    reason: "INTERNAL_PIPELINE_ERROR",
    code: "LS_UNAVAILABLE",
    detail: "the server failed",
  };
}

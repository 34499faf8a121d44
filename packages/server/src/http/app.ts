/**
 * The HTTP side: from requests to answers. It promises that every answer that is not a success is a problem
 * document, that a connection that went away is noticed, and that nothing a client sends ends in a 5xx
 * unless the store is down. It knows nothing about leases.
 */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { encodeProblem, type ProblemInput } from "solehold/internal";
import { answerToError, type ServerContext } from "../access/context.ts";
import type { Principal } from "../access/principal.ts";
import { unauthenticated } from "../access/refusals.ts";
import { isTooDeep, MAX_JSON_DEPTH } from "../protocol/json-depth.ts";
import { draining, ProblemError, refusal } from "../protocol/problem.ts";
import type { EventStreams } from "../watch/sse.ts";
import { DASHBOARD_POLICY, type PageFile } from "./dashboard-files.ts";
import { HttpCall } from "./http-call.ts";
import { answerBadHttp, methodNotAllowed, problemOfRequest, routeNotFound } from "./http-problems.ts";
import { bodyOf } from "./idempotency-key.ts";
import type { Pipelines } from "./pipeline.ts";
import type { Answer, EventRoute, Route, RouteSpec } from "./route.ts";

export interface AppOptions extends ServerContext {
  readonly routes: readonly Route[];
  readonly eventRoutes: readonly EventRoute[];
  readonly events: EventStreams;
  readonly pipelines: Pipelines;
  /** The dashboard; none where it was not built. */
  readonly pages: readonly PageFile[];
  readonly bodyLimitBytes: number;
  readonly tls: SecureContext | null;
}

export interface SecureContext {
  readonly cert: string;
  readonly key: string;
  /** With it only clients with a certificate of this authority get as far as a request. */
  readonly ca?: string;
  readonly requestCert?: boolean;
}

export type App = FastifyInstance;

const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const JSON_TYPE = "application/json; charset=utf-8";
/** A request must have arrived whole within this; waiting for its answer does not count. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Of one command, with all the approvals that it may bring. */
const MAX_BODY_BYTES = 262_144;
/** The status of an answer that nobody is left to read. */
const CLIENT_GONE = 499;

export function buildApp(options: AppOptions): App {
  const { env, routes, eventRoutes, events, pipelines, pages, bodyLimitBytes, tls, limits } = options;
  const app = Fastify({
    ...(tls === null ? {} : { https: tls }),
    bodyLimit: bodyLimitBytes,
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    forceCloseConnections: "idle",
    clientErrorHandler: (error, socket) => answerBadHttp(error, socket, env),
    frameworkErrors: (error, request, reply) => {
      refuse(request as FastifyRequest, reply as FastifyReply, problemOfRequest(error));
    },
  }) as unknown as App;
  app.removeAllContentTypeParsers();
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body: string, done) => {
    if (isTooDeep(body))
      done(new ProblemError(refusal("body", `must not be nested deeper than ${MAX_JSON_DEPTH} levels`)));
    else parseJson(request, body, done);
  });

  const calls = new WeakMap<FastifyRequest, HttpCall>();
  const callOf = (request: FastifyRequest, reply: FastifyReply): HttpCall => {
    const call = calls.get(request) ?? new HttpCall(options, request, reply);
    calls.set(request, call);
    return call;
  };
  const answer = (request: FastifyRequest, reply: FastifyReply, given: Answer): FastifyReply => {
    finish(options, given, callOf(request, reply));
    // A client that keeps its connection would otherwise come back to a server that is going.
    if (options.isDraining()) reply.header("connection", "close");
    return send(reply, given);
  };
  const refuse = (request: FastifyRequest, reply: FastifyReply, input: ProblemInput): FastifyReply =>
    answer(request, reply, encodeProblem(input, callOf(request, reply).traceId));
  const specs = [...routes, ...eventRoutes].map(({ spec }) => spec);
  const open = new Set([
    ...specs.filter(({ access }) => access === "open").map(({ path }) => path),
    ...pages.map(({ path }) => path),
  ]);

  app.addHook("onRequest", (request, reply, done) => {
    const call = callOf(request, reply);
    reply.header("traceparent", call.traceparent());
    reply.header("x-content-type-options", "nosniff");
    reply.header("cache-control", "no-store");
    const isOpen = open.has(request.routeOptions.url ?? "");
    pipelines.enter(request.raw, reply.raw, () => {
      try {
        const admitted = isOpen ? undefined : admit(options, request, call);
        if (admitted === undefined) done();
        else admitted.then(() => done(), done);
      } catch (error) {
        done(error as Error);
      }
    });
  });

  for (const route of routes) {
    app.route({
      method: route.spec.method,
      url: route.spec.path,
      exposeHeadRoute: route.spec.method === "GET",
      bodyLimit: Math.min(bodyLimitBytes, route.spec.bodyLimitBytes ?? MAX_BODY_BYTES),
      handler: async (request, reply) => {
        const given = await route.run(bodyOf(request), request.query, callOf(request, reply));
        return answer(request, reply, given);
      },
    });
  }
  for (const { spec, open: openEvents } of eventRoutes) {
    app.get(spec.path, (request, reply) => {
      const call = callOf(request, reply);
      const { principal } = call;
      const { "last-event-id": lastEventId } = request.headers;
      const after = typeof lastEventId === "string" ? lastEventId : null;
      const { tenant, source } = openEvents(request.query, principal, after);
      reply.raw.once("close", limits.connections.take(principal));
      reply.raw.once("close", limits.watches.take(principal, tenant));
      reply.hijack();
      const stop = options.authenticator.onInvalid(principal, () => reply.raw.destroy());
      reply.raw.once("close", stop);
      events.serve(reply.raw, { traceparent: call.traceparent() }, source);
    });
  }
  for (const file of pages) {
    app.get(file.path, { exposeHeadRoute: true }, (request, reply) => {
      finish(options, { status: 200, body: null }, callOf(request, reply));
      return sendPage(request, reply, file);
    });
  }
  app.setNotFoundHandler((request, reply) => {
    const allowed = methodsOf(specs, request.url);
    if (allowed.length > 0) reply.header("allow", allowed.join(", "));
    const { method } = request;
    return refuse(
      request,
      reply,
      allowed.length > 0 ? methodNotAllowed(method, allowed) : routeNotFound(method),
    );
  });
  app.setErrorHandler(async (thrown, request, reply) => {
    const call = callOf(request, reply);
    const given = await answerToError(options, thrown, call, problemOfRequest);
    // A wait whose API key was revoked ended as if its client had gone; but the client is there.
    if (given.status === CLIENT_GONE && call.isCancelled()) return refuse(request, reply, unauthenticated());
    return answer(request, reply, given);
  });
  return app;
}

function admit(
  { isDraining, authenticator, limiter }: AppOptions,
  request: FastifyRequest,
  call: HttpCall,
): undefined | Promise<undefined> {
  if (isDraining()) throw new ProblemError(draining());
  const accept = (principal: Principal): undefined => {
    call.principal = principal;
    limiter.take(principal.id, 1);
  };
  const admitted = authenticator.admit(request.raw);
  return admitted instanceof Promise ? admitted.then(accept) : accept(admitted);
}

function send(reply: FastifyReply, { status, body, contentType }: Answer): FastifyReply {
  const { retryAfterMs } = (body ?? {}) as { retryAfterMs?: number };
  if (status >= 400 && retryAfterMs !== undefined) {
    reply.header("retry-after", retryAfterSeconds(retryAfterMs));
  }
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="solehold"');
  reply.code(status);
  if (contentType !== undefined) return reply.type(contentType).send(body);
  return reply.type(status >= 400 ? PROBLEM_TYPE : JSON_TYPE).send(JSON.stringify(body));
}

function sendPage({ headers }: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  reply.header("content-security-policy", DASHBOARD_POLICY);
  reply.header("referrer-policy", "no-referrer");
  reply.header("vary", "accept-encoding");
  if (file.immutable) reply.header("cache-control", "public, max-age=31536000, immutable");
  const isGzipped = String(headers["accept-encoding"] ?? "").includes("gzip");
  if (isGzipped) reply.header("content-encoding", "gzip");
  return reply.type(file.contentType).send(isGzipped ? file.gzipped : file.body);
}

/** Retry-After counts whole seconds; rounded up, so that nobody comes too early. */
function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
}

function finish({ log }: AppOptions, { status, body }: Answer, call: HttpCall): void {
  const seconds = call.answered(status);
  const level = status >= 500 ? "warn" : "debug";
  if (!log.isLevelEnabled(level)) return;
  const { reason = "" } = (body ?? {}) as { reason?: string };
  const { route, traceId, principal } = call;
  const ms = Math.round(seconds * 1_000);
  log[level]({ route, status, reason, traceId, by: principal.id, ms }, "answered");
}

function methodsOf(specs: readonly Omit<RouteSpec, "handle">[], url: string): readonly string[] {
  const [path] = url.split("?", 1);
  return specs.filter((spec) => spec.path === path).map(({ method }) => method);
}

/**
 * The HTTP side: from requests to answers. It promises that every answer that is not a success is a problem
 * document, that a connection that went away is noticed, and that nothing a client sends ends in a 5xx
 * unless the store is down. It knows nothing about leases.
 */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Env } from "solehold/internal";
import { encodeProblem, type RandomIds } from "solehold/internal";
import type { AccessAudit } from "../access/access-audit.ts";
import type { Authenticator } from "../access/authenticator.ts";
import type { Call, Connection } from "../access/call.ts";
import { LOCAL_PRINCIPAL, type Principal } from "../access/principal.ts";
import type { RateLimiter } from "../access/rate-limit.ts";
import { unauthenticated } from "../access/refusals.ts";
import { remoteAddress } from "../access/remote-address.ts";
import type { SharedLimits } from "../access/shares.ts";
import { isTooDeep, MAX_JSON_DEPTH } from "../protocol/json-depth.ts";
import { draining, ProblemError, refusal } from "../protocol/problem.ts";
import type { FailureLog } from "../telemetry/failure-log.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type RequestSpan, startSpan } from "../telemetry/spans.ts";
import { traceOf } from "../telemetry/trace.ts";
import type { EventStreams } from "../watch/sse.ts";
import { DASHBOARD_POLICY, type PageFile } from "./dashboard-files.ts";
import { answerBadHttp, methodNotAllowed, problemOfRequest, routeNotFound } from "./http-problems.ts";
import { bodyOf } from "./idempotency-key.ts";
import { LANDING_POLICY } from "./landing-page.ts";
import { Pipelines } from "./pipeline.ts";
import type { Answer, EventRoute, Route, RouteSpec } from "./route.ts";

export interface AppOptions {
  readonly env: Env;
  readonly traces: RandomIds;
  readonly routes: readonly Route[];
  readonly eventRoutes: readonly EventRoute[];
  readonly events: EventStreams;
  /** The dashboard; none where it was not built. */
  readonly pages: readonly PageFile[];
  readonly authenticator: Authenticator;
  readonly limiter: RateLimiter;
  readonly accessAudit: AccessAudit;
  readonly limits: SharedLimits;
  readonly behindProxy: "yes" | "no";
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly failures: FailureLog;
  readonly bodyLimitBytes: number;
  readonly tls: SecureContext | null;
  readonly isDraining: () => boolean;
}

export interface SecureContext {
  readonly cert: string;
  readonly key: string;
  /** With it only clients with a certificate of this authority get as far as a request. */
  readonly ca?: string;
  readonly requestCert?: boolean;
}

export type App = FastifyInstance;

interface Arrival {
  readonly traceId: string;
  readonly address: string;
  readonly span: RequestSpan;
  readonly receivedMs: number;
  principal: Principal;
  /** The call that it became, for a route. */
  call?: Call;
}

const PROBLEM_TYPE = "application/problem+json; charset=utf-8";
const JSON_TYPE = "application/json; charset=utf-8";
/** A request must have arrived whole within this; waiting for its answer does not count. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Of one command, with all the approvals that it may bring. */
const MAX_BODY_BYTES = 262_144;
/** A client has as long to take an answer that others wait for. */
const TAKE_TIMEOUT_MS = REQUEST_TIMEOUT_MS;
/** The status of an answer that nobody is left to read. */
const CLIENT_GONE = 499;

export function buildApp(options: AppOptions): App {
  const { env, traces, routes, eventRoutes, events, pages, bodyLimitBytes, tls, limits } = options;
  const app = Fastify({
    ...(tls === null ? {} : { https: tls }),
    bodyLimit: bodyLimitBytes,
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    forceCloseConnections: "idle",
    clientErrorHandler: (error, socket) => answerBadHttp(error, socket, env),
    frameworkErrors: (error, request, reply) => {
      const arrival = arrivalOf(request as FastifyRequest);
      answer(request as FastifyRequest, reply as FastifyReply, failed(error, arrival));
    },
  }) as unknown as App;
  app.removeAllContentTypeParsers();
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body: string, done) => {
    if (isTooDeep(body))
      done(new ProblemError(refusal("body", `must not be nested deeper than ${MAX_JSON_DEPTH} levels`)));
    else parseJson(request, body, done);
  });

  const arrivals = new WeakMap<FastifyRequest, Arrival>();
  const arrivalOf = (request: FastifyRequest): Arrival => {
    const known = arrivals.get(request);
    if (known !== undefined) return known;
    const trace = traceOf(request.headers.traceparent, traces);
    const span = startSpan(routeName(request), trace, env);
    const { traceId } = trace;
    const address = remoteAddress(request.raw, options.behindProxy);
    const arrival: Arrival = {
      traceId,
      address,
      span,
      receivedMs: env.monotonicMs(),
      principal: LOCAL_PRINCIPAL,
    };
    arrivals.set(request, arrival);
    return arrival;
  };
  const answer = (request: FastifyRequest, reply: FastifyReply, given: Answer): FastifyReply => {
    finish(options, request, given, arrivalOf(request));
    // A client that keeps its connection would otherwise come back to a server that is going.
    if (options.isDraining()) reply.header("connection", "close");
    return send(reply, given);
  };
  const page = (request: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply => {
    finish(options, request, { status: 200, body: null }, arrivalOf(request));
    return sendPage(request, reply, file);
  };
  const specs = [...routes, ...eventRoutes].map(({ spec }) => spec);
  const index = pages.find(({ path }) => path === "/");
  const open = new Set([
    ...specs.filter(({ access }) => access === "open").map(({ path }) => path),
    ...pages.map(({ path }) => path),
  ]);

  const pipelines = new Pipelines(env);
  app.addHook("onRequest", (request, reply, done) => {
    const arrival = arrivalOf(request);
    reply.header("traceparent", arrival.span.traceparent());
    reply.header("x-content-type-options", "nosniff");
    reply.header("cache-control", "no-store");
    const isOpen = open.has(request.routeOptions.url ?? "");
    pipelines.enter(request.raw, reply.raw, () => {
      try {
        const admitted = isOpen ? undefined : admit(options, request, arrival);
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
        const arrival = arrivalOf(request);
        if (route.spec.path === "/" && index !== undefined && isBrowser(request))
          return page(request, reply, index);
        const call = callOf(options, arrival, reply);
        arrival.call = call;
        const given = await route.run(bodyOf(request), request.query, call);
        return answer(
          request,
          reply,
          given.status === CLIENT_GONE ? withdrawn(options, arrival, given) : given,
        );
      },
    });
  }
  for (const { spec, open: openEvents } of eventRoutes) {
    app.get(spec.path, (request, reply) => {
      const arrival = arrivalOf(request);
      const { "last-event-id": lastEventId } = request.headers;
      const after = typeof lastEventId === "string" ? lastEventId : null;
      const { tenant, source } = openEvents(request.query, arrival.principal, after);
      reply.raw.once("close", limits.connections.take(arrival.principal));
      reply.raw.once("close", limits.watches.take(arrival.principal, tenant));
      reply.hijack();
      reply.raw.once(
        "close",
        options.authenticator.onInvalid(arrival.principal, () => reply.raw.destroy()),
      );
      events.serve(reply.raw, { traceparent: arrival.span.traceparent() }, source);
    });
  }
  for (const file of pages) {
    if (file !== index) app.get(file.path, (request, reply) => page(request, reply, file));
  }
  app.setNotFoundHandler((request, reply) => {
    const allowed = methodsOf(specs, request.url);
    if (allowed.length > 0) reply.header("allow", allowed.join(", "));
    const input =
      allowed.length > 0 ? methodNotAllowed(request.method, allowed) : routeNotFound(request.method);
    return answer(request, reply, encodeProblem(input, arrivalOf(request).traceId));
  });
  app.setErrorHandler(async (thrown, request, reply) => {
    const arrival = arrivalOf(request);
    const error = await options.accessAudit.refused(thrown, arrival).then(
      () => thrown,
      (unaudited: unknown) => unaudited,
    );
    const given = failed(error, arrival);
    if (given.status >= 500) options.failures.failed(error, arrival.traceId);
    return answer(request, reply, given);
  });
  return app;
}

function admit(
  { isDraining, authenticator, limiter }: AppOptions,
  request: FastifyRequest,
  arrival: Arrival,
): undefined | Promise<undefined> {
  if (isDraining()) throw new ProblemError(draining());
  const accept = (principal: Principal): undefined => {
    arrival.principal = principal;
    limiter.take(principal.id, 1);
  };
  const admitted = authenticator.admit(request.raw);
  return admitted instanceof Promise ? admitted.then(accept) : accept(admitted);
}

/** A wait whose API key was revoked ended as if its client had gone; but the client is there. */
function withdrawn({ authenticator }: AppOptions, { principal, traceId }: Arrival, given: Answer): Answer {
  return authenticator.isCurrent(principal) ? given : encodeProblem(unauthenticated(), traceId);
}

function callOf(
  options: AppOptions,
  { principal, traceId, address, receivedMs }: Arrival,
  reply: FastifyReply,
): Call {
  const connection = connectionOf(options, reply, principal);
  return { principal, traceId, address, receivedMs, waitedMs: 0, connection };
}

/** A caller whose API key is no longer valid counts as gone: nothing is granted to it any more. */
function connectionOf(
  { env, authenticator }: AppOptions,
  { raw }: FastifyReply,
  principal: Principal,
): Connection {
  const isGone = (): boolean =>
    (raw.destroyed && !raw.writableFinished) || !authenticator.isCurrent(principal);
  return {
    isGone,
    isCancelled: () => !authenticator.isCurrent(principal),
    onGone: (listener) => {
      const onClose = (): void => {
        if (isGone()) listener();
      };
      raw.on("close", onClose);
      const stop = authenticator.onInvalid(principal, listener);
      return () => {
        raw.off("close", onClose);
        stop();
      };
    },
    onTaken: (listener) => {
      if (raw.destroyed) return listener();
      const tooLate = env.timer(TAKE_TIMEOUT_MS, () => raw.destroy());
      raw.once("close", () => {
        tooLate.cancel();
        listener();
      });
    },
  };
}

function failed(error: unknown, { traceId }: Arrival): Answer {
  return encodeProblem(problemOfRequest(error), traceId);
}

function send(reply: FastifyReply, { status, body, contentType }: Answer): FastifyReply {
  const { retryAfterMs } = (body ?? {}) as { retryAfterMs?: number };
  if (status >= 400 && retryAfterMs !== undefined) {
    reply.header("retry-after", retryAfterSeconds(retryAfterMs));
  }
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="solehold"');
  reply.code(status);
  if (contentType === undefined) {
    return reply.type(status >= 400 ? PROBLEM_TYPE : JSON_TYPE).send(JSON.stringify(body));
  }
  if (contentType.startsWith("text/html")) reply.header("content-security-policy", LANDING_POLICY);
  return reply.type(contentType).send(body);
}

function isBrowser({ headers: { accept = "" } }: FastifyRequest): boolean {
  return accept.includes("text/html");
}

function sendPage({ headers }: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  reply.header("content-security-policy", DASHBOARD_POLICY);
  reply.header("referrer-policy", "no-referrer");
  reply.header("vary", "accept, accept-encoding");
  if (file.immutable) reply.header("cache-control", "public, max-age=31536000, immutable");
  const isGzipped = String(headers["accept-encoding"] ?? "").includes("gzip");
  if (isGzipped) reply.header("content-encoding", "gzip");
  return reply.type(file.contentType).send(isGzipped ? file.gzipped : file.body);
}

/** Retry-After counts whole seconds; rounded up, so that nobody comes too early. */
function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
}

function finish(
  { env, metrics, log }: AppOptions,
  request: FastifyRequest,
  { status, body }: Answer,
  { receivedMs, traceId, principal, span, call }: Arrival,
): void {
  const seconds = (env.monotonicMs() - receivedMs - (call?.waitedMs ?? 0)) / 1_000;
  const route = routeName(request);
  span.end(status);
  metrics.answered(route, status, seconds);
  const level = status >= 500 ? "warn" : "debug";
  if (!log.isLevelEnabled(level)) return;
  const { reason = "" } = (body ?? {}) as { reason?: string };
  const ms = Math.round(seconds * 1_000);
  log[level]({ route, status, reason, traceId, by: principal.id, ms }, "answered");
}

function routeName({ method, routeOptions }: FastifyRequest): string {
  return routeOptions?.url === undefined ? "unknown" : `${method} ${routeOptions.url}`;
}

function methodsOf(specs: readonly Omit<RouteSpec, "handle">[], url: string): readonly string[] {
  const [path] = url.split("?", 1);
  return specs.filter((spec) => spec.path === path).map(({ method }) => method);
}

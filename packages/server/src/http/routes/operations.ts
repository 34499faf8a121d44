/** Health, readiness, metrics and the API's description. */

import type { LeaseService, ProblemInput } from "solehold/internal";
import { DEFAULT_TENANT, delay, type Env } from "solehold/internal";
import { Type } from "typebox";
import { assertAllowedEverywhere } from "../../access/principal.ts";
import { draining, ProblemError } from "../../protocol/problem.ts";
import { Text } from "../../protocol/schemas/kinds.ts";
import { ProblemSchema } from "../../protocol/schemas/problem.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { defineRoute, type Route } from "../route.ts";

export interface OperationsOptions {
  readonly env: Env;
  readonly service: LeaseService;
  readonly metrics: Metrics;
  readonly version: string;
  readonly isLeaving: () => boolean;
  readonly openApi: () => string;
}

/** The store is asked at most this often, however often readiness is. */
const PROBE_EVERY_MS = 1_000;
/** A probe that takes longer than its asker waits is no answer: Kubernetes waits a second. */
const ANSWER_WITHIN_MS = 500;
const JSON_TYPE = "application/json; charset=utf-8";
const PROBE_KEY = { tenant: DEFAULT_TENANT, name: "solehold/readiness" };

export function operationsRoutes(options: OperationsOptions): readonly Route[] {
  const { service, metrics, version } = options;
  const probe = readinessProbe(options);
  const health = defineRoute({
    method: "GET",
    path: "/healthz",
    operationId: "health",
    tag: "operations",
    access: "open",
    summary: "The process answers",
    replies: { 200: { description: "It does.", schema: Type.Object({ status: Type.Literal("ok") }) } },
    examples: [{ summary: "Ask", status: 200 }],
    handle: async () => ({ status: "ok" }),
  });
  const ready = defineRoute({
    method: "GET",
    path: "/readyz",
    operationId: "ready",
    tag: "operations",
    access: "open",
    summary:
      "Send traffic here: the store answers, the audit is written, and the server is not shutting down",
    replies: {
      200: {
        description: "Ready.",
        schema: Type.Object({
          status: Type.Literal("ready"),
          store: Text("Which kind of store it is over."),
          version: Text("Of the server."),
        }),
      },
      503: {
        description:
          "Not now: the store does not answer, the audit cannot be written, or the server is going.",
        contentType: "application/problem+json",
        schema: ProblemSchema,
      },
    },
    examples: [{ summary: "Ask", status: 200 }],
    async handle() {
      if (options.isLeaving()) throw new ProblemError(draining());
      await probe();
      return { status: "ready", store: service.executor.store.name, version };
    },
  });
  const scrape: Route = {
    spec: {
      method: "GET",
      path: "/metrics",
      operationId: "metrics",
      tag: "operations",
      summary: "Prometheus metrics",
      replies: { 200: { description: "Text.", contentType: "text/plain", schema: Type.String() } },
      examples: [{ summary: "Scrape", status: 200 }],
    },
    async run(_body, _query, { principal }) {
      assertAllowedEverywhere(principal, "metrics");
      return { status: 200, body: await metrics.text(), contentType: metrics.registry.contentType };
    },
  };
  const describe: Route = {
    spec: {
      method: "GET",
      path: "/openapi.json",
      operationId: "openApi",
      tag: "operations",
      access: "open",
      summary: "This document",
      replies: { 200: { description: "OpenAPI 3.1.", schema: Type.Object({}) } },
      examples: [{ summary: "Read", status: 200 }],
    },
    run: async () => ({ status: 200, body: options.openApi(), contentType: JSON_TYPE }),
  };
  return [health, ready, scrape, describe];
}

/** Asks the store and the audit, and rejects with what is wrong; answers from memory within a second. */
function readinessProbe({ env, service }: OperationsOptions): () => Promise<void> {
  let last: Promise<unknown> | null = null;
  let askedMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (last === null || env.monotonicMs() - askedMs > PROBE_EVERY_MS) {
      askedMs = env.monotonicMs();
      // Rejects once an entry was refused, until one is taken again.
      const written = service.audit.flush().catch(() => {
        throw new ProblemError(notReady("the audit trail cannot be written: nothing is confirmed"));
      });
      last = Promise.all([service.read(PROBE_KEY), written]);
      last.catch(() => undefined);
    }
    const enough = new AbortController();
    const late = delay(env, ANSWER_WITHIN_MS, enough.signal).then(() => "late" as const);
    const first = await Promise.race([last, late]).finally(() => enough.abort());
    if (first === "late") throw new ProblemError(notReady("the store or the audit does not answer in time"));
  };
}

function notReady(detail: string): ProblemInput {
  return { reason: "STORE_UNAVAILABLE", detail, facts: { retryAfterMs: PROBE_EVERY_MS } };
}

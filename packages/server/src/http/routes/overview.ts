/** GET /v1/whoami, /v1/server and /v1/activity: what a dashboard shows besides leases. */
import { type Check, collectionObstacle, type LeaseService } from "solehold/internal";
import { Type } from "typebox";
import { ACTIONS, assertAllowedEverywhere } from "../../access/principal.ts";
import { Instant } from "../../protocol/schemas/fields.ts";
import { Closed, Count, Fact, OrNull, Text, Texts } from "../../protocol/schemas/kinds.ts";
import { type Activity, ActivityBucketSchema, BUCKET_MS } from "../../telemetry/activity.ts";
import { defineRoute, type Route } from "../route.ts";
import { findingsOf, type ServerFacts, ServerReply } from "./server-findings.ts";

const WhoReply = Closed({
  id: Text("The API key's id; `local` where none are needed."),
  keysRequired: Fact("Whether this server asks for API keys."),
  tenants: OrNull(Texts("These tenants."), "Null for all of them."),
  prefixes: Texts("Names must begin with one of these; an empty one allows all."),
  actions: Type.Array(Type.Enum([...ACTIONS]), { description: "What it may do there." }),
  storeTimeMs: Instant,
});

const ActivityReply = Closed({
  bucketMs: Count("How long a bucket is."),
  buckets: Type.Array(ActivityBucketSchema, { description: "The oldest first; at most an hour." }),
});

export interface OverviewOptions {
  readonly service: LeaseService;
  readonly activity: Activity;
  readonly keysRequired: () => boolean;
  readonly facts: () => Omit<ServerFacts, "store" | "policy" | "keysRequired">;
}

export function overviewRoutes({
  service,
  activity,
  keysRequired,
  facts,
}: OverviewOptions): readonly Route[] {
  const who = defineRoute({
    method: "GET",
    path: "/v1/whoami",
    operationId: "whoAmI",
    tag: "operations",
    summary: "Who asks, and what they may do",
    replies: { 200: { description: "The scope of the API key.", schema: WhoReply } },
    examples: [{ summary: "Ask", status: 200 }],
    handle: async (_input, { principal: { id, scope } }) => ({
      ...{ id, keysRequired: keysRequired(), tenants: scope.tenants, prefixes: scope.prefixes },
      ...{ actions: [...scope.actions], storeTimeMs: Math.floor(service.executor.storeNowMs()) },
    }),
  });
  const server = defineRoute({
    method: "GET",
    path: "/v1/server",
    operationId: "describeServer",
    tag: "operations",
    summary: "This server, its store and its audit trail",
    description: "Needs an API key for 'metrics' in all tenants.",
    replies: { 200: { description: "As of now.", schema: ServerReply } },
    examples: [{ summary: "Look", status: 200 }],
    async handle(_input, { principal }) {
      assertAllowedEverywhere(principal, "metrics");
      const all: ServerFacts = { ...facts(), ...storeFacts(service), keysRequired: keysRequired() };
      const findings: readonly Check[] = findingsOf(all, collectionObstacle(service.executor.store));
      return { ...all, findings };
    },
  });
  const recent = defineRoute({
    method: "GET",
    path: "/v1/activity",
    operationId: "getActivity",
    tag: "operations",
    summary: "What was granted, denied and renewed in the last hour",
    description: "Needs an API key for 'metrics' in all tenants.",
    query: Closed({ afterMs: Type.Optional(Count("Only buckets that ended later.")) }),
    replies: { 200: { description: "In buckets of a few seconds.", schema: ActivityReply } },
    examples: [{ summary: "All", status: 200 }],
    async handle({ query: { afterMs = 0 } }, { principal }) {
      assertAllowedEverywhere(principal, "metrics");
      return { bucketMs: BUCKET_MS, buckets: activity.after(afterMs) };
    },
  });
  return [who, server, recent];
}

function storeFacts({ executor }: LeaseService): Pick<ServerFacts, "store" | "policy"> {
  const { store, policy, clockJumps } = executor;
  const { capabilities } = store;
  const { durable, clock, clockGranularityMs, clockSkewMs, watch, conditionalDelete, maxBatch } =
    capabilities;
  const { defaultTtlMs, minTtlMs, maxTtlMs, graceMs } = policy;
  return {
    store: {
      ...{ name: store.name, durable, clock, clockGranularityMs, clockSkewMs, watch, conditionalDelete },
      ...{
        list: store.list !== undefined,
        maxBatch: Math.min(maxBatch, Number.MAX_SAFE_INTEGER),
        clockJumps,
      },
    },
    policy: { defaultTtlMs, minTtlMs, maxTtlMs, graceMs },
  };
}

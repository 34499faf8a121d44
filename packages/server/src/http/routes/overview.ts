/** GET /v1/whoami, /v1/server and /v1/activity: what a dashboard shows besides leases. */
import { type Check, collectionObstacle, type LeaseService } from "solehold/internal";
import { Type } from "typebox";
import { ACTIONS, assertAllowedEverywhere } from "../../access/principal.ts";
import { Instant } from "../../protocol/schemas/fields.ts";
import { type Activity, BUCKET_MS } from "../../telemetry/activity.ts";
import { defineRoute, type Route } from "../route.ts";
import { CheckSchema } from "./doctor.ts";
import { findingsOf, type ServerFacts } from "./server-findings.ts";

const strict = { additionalProperties: false } as const;
const Count = (description: string) => Type.Integer({ minimum: 0, description });
const Ratio = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });
const Texts = (description: string) => Type.Array(Type.String(), { description });

const WhoReply = Type.Object(
  {
    id: Type.String({ description: "The API key's id; `local` where none are needed." }),
    keysRequired: Type.Boolean({ description: "Whether this server asks for API keys." }),
    tenants: Type.Union([Texts("These tenants."), Type.Null()], { description: "Null for all of them." }),
    prefixes: Texts("Names must begin with one of these; an empty one allows all."),
    actions: Type.Array(Type.Enum([...ACTIONS]), { description: "What it may do there." }),
    storeTimeMs: Instant,
  },
  strict,
);

const ServerReply = Type.Object(
  {
    version: Type.String({ description: "Of the server." }),
    startedMs: Type.Integer({ description: "Since when it runs, in ms since 1970." }),
    keysRequired: Type.Boolean({ description: "Whether this server asks for API keys." }),
    store: Type.Object(
      {
        name: Type.String({ description: "Which kind of store." }),
        durable: Type.Boolean({ description: "Acknowledged writes survive a crash." }),
        clock: Type.String({ description: "Where its time comes from: exact, reply or none." }),
        clockGranularityMs: Count("The resolution of its time."),
        clockSkewMs: Count("How far apart the clocks of its machines may be."),
        watch: Type.Boolean({ description: "It announces the writes of other processes." }),
        list: Type.Boolean({ description: "Its leases can be listed." }),
        conditionalDelete: Type.Boolean({ description: "Ended records can be deleted safely." }),
        maxBatch: Count("Keys in one call."),
        clockJumps: Count("How often its clock was seen to jump since the start."),
      },
      { ...strict, description: "What the store can do, and what it promises." },
    ),
    policy: Type.Object(
      {
        defaultTtlMs: Count("The ttl of requests that name none."),
        minTtlMs: Count("Shorter ones are refused."),
        maxTtlMs: Count("Longer ones are refused."),
        graceMs: Count("How long before its end a lease is in its grace period."),
      },
      { ...strict, description: "The bounds of leases." },
    ),
    audit: Type.Object(
      {
        durability: Type.String({ description: "When an entry is on the disk." }),
        entries: Count("The last entry that is safe."),
        lag: Count("Entries that are not on the disk yet."),
        dropped: Count("Entries lost because the disk could not keep up."),
      },
      { ...strict, description: "The audit trail." },
    ),
    counts: Type.Object(
      {
        liveLeases: Count("Alive, in tenants used through this server."),
        waiters: Count("Requests in a wait queue."),
        watchers: Count("Open watches."),
        streams: Count("Open stream connections."),
      },
      { ...strict, description: "What there is now." },
    ),
    findings: Type.Array(CheckSchema, { description: "What an operator should know." }),
  },
  strict,
);

const ActivityReply = Type.Object(
  {
    bucketMs: Count("How long a bucket is."),
    buckets: Type.Array(
      Type.Object(
        {
          atMs: Type.Integer({ description: "When it ended, in ms since 1970 on this server's clock." }),
          grants: Count("Leases granted."),
          takeovers: Count("Grants of leases whose last holder did not finish."),
          expiries: Count("Leases that ran out."),
          renewals: Count("Leases renewed."),
          renewalAge: Ratio("How much of its ttl a lease had used up when it was renewed, on average."),
          renewalAgeMost: Ratio("An upper bound for the latest of them; null above 1."),
          denials: Type.Record(Type.String(), Type.Integer(), {
            description: "Attempts not allowed, by reason.",
          }),
          waiters: Count("Requests in a wait queue at its end."),
          liveLeases: Count("Leases alive at its end."),
        },
        strict,
      ),
      { description: "The oldest first; at most an hour." },
    ),
  },
  strict,
);

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
      status: 200,
      body: {
        ...{ id, keysRequired: keysRequired(), tenants: scope.tenants, prefixes: scope.prefixes },
        ...{ actions: [...scope.actions], storeTimeMs: Math.floor(service.executor.storeNowMs()) },
      },
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
      return { status: 200, body: { ...all, findings } };
    },
  });
  const recent = defineRoute({
    method: "GET",
    path: "/v1/activity",
    operationId: "getActivity",
    tag: "operations",
    summary: "What was granted, denied and renewed in the last hour",
    description: "Needs an API key for 'metrics' in all tenants.",
    query: Type.Object(
      { afterMs: Type.Optional(Type.Integer({ minimum: 0, description: "Only buckets that ended later." })) },
      strict,
    ),
    replies: { 200: { description: "In buckets of a few seconds.", schema: ActivityReply } },
    examples: [{ summary: "All", status: 200 }],
    async handle({ query: { afterMs = 0 } }, { principal }) {
      assertAllowedEverywhere(principal, "metrics");
      return { status: 200, body: { bucketMs: BUCKET_MS, buckets: activity.after(afterMs) } };
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

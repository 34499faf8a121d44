/** GET /v1/audit, /v1/audit/watch and /v1/audit/verify: every attempt, and the proof that none was changed. */
import {
  type AuditFilter,
  type AuditHead,
  type AuditQuery,
  type AuditTrail,
  type AuditVerification,
  given,
  type VerifyOptions,
} from "solehold/internal";
import { type Static, Type } from "typebox";
import { oneAtATime } from "../../access/one-at-a-time.ts";
import { assertAllowed, assertAllowedEverywhere, type Principal, tenantOf } from "../../access/principal.ts";
import {
  Instant,
  LeaseId,
  Reason,
  ReasonCode,
  Sequence,
  strict,
  TraceId,
} from "../../protocol/schemas/fields.ts";
import { checkQueryOf } from "../../protocol/validation.ts";
import { type DecisionFeed, decisionEvents } from "../../watch/decision-feed.ts";
import { defineRoute, type EventRoute, type Route } from "../route.ts";

const MAX_ENTRIES = 1_000;
const DEFAULT_ENTRIES = 100;

const filterFields = {
  tenant: Type.Optional(
    Type.String({ description: "The tenant, as elsewhere; `*` for all, if the API key is for all." }),
  ),
  name: Type.Optional(Type.String({ description: "Only this lease." })),
  holder: Type.Optional(Type.String({ description: "Only attempts of exactly this holder." })),
  action: Type.Optional(
    Type.String({ description: "Only one kind of attempt: grant, renew, release, use, expire, revoke." }),
  ),
  caller: Type.Optional(Type.String({ description: "Only requests with the API key of this id." })),
  except: Type.Optional(Type.String({ description: "Not these kinds of attempts: `renew,use`." })),
  reason: Type.Optional(Type.String({ description: "Only attempts that ended for this reason." })),
  allowed: Type.Optional(Type.Boolean({ description: "Only those that were allowed, or that were not." })),
};

const AuditQuerySchema = Type.Object(
  {
    ...filterFields,
    fromMs: Type.Optional(
      Type.Integer({ minimum: 0, description: "Not before this instant, in ms since 1970." }),
    ),
    untilMs: Type.Optional(
      Type.Integer({ minimum: 0, description: "Before this instant, in ms since 1970." }),
    ),
    after: Type.Optional(Type.Integer({ minimum: 0, description: "Only entries after this sequence." })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_ENTRIES, description: "How many entries at most." }),
    ),
    order: Type.Optional(
      Type.Enum(["oldest-first", "newest-first"], { description: "From which end; oldest-first." }),
    ),
  },
  strict,
);

const Hash = Type.String({ description: "SHA-256 over the entry and the hash before it, hexadecimal." });

const Head = Type.Object(
  { sequence: Sequence, hash: Hash },
  { ...strict, description: "The last entry: keep it elsewhere, and nothing before it can be changed." },
);

const WatchQuerySchema = Type.Object(filterFields, strict);
const checkWatch = checkQueryOf(WatchQuerySchema);

const AuditEntrySchema = Type.Object(
  {
    sequence: Sequence,
    previousHash: Type.String({ description: "The hash of the entry before." }),
    hash: Hash,
    at: Instant,
    tenant: Type.String({ description: "Whose lease it was about." }),
    key: Type.String({ description: "The lease's name." }),
    leaseId: LeaseId,
    action: Type.String({ description: "What was attempted: grant, renew, release, use, expire, revoke." }),
    allowed: Type.Boolean({ description: "How it was decided." }),
    reason: Reason,
    reasonCode: ReasonCode,
    code: Type.Optional(Type.String({ description: "LS_OK, LS_EXPIRED, LS_STALE_USE, ..." })),
    holder: Type.Optional(Type.String({ description: "Who attempted it, where it was said." })),
    fence: Type.Optional(Type.String({ description: "The grant's number, decimal, where there was one." })),
    purpose: Type.Optional(Type.String({ description: "The purpose that was named, where one was." })),
    caller: Type.Optional(Type.String({ description: "The id of the API key; `local` without keys." })),
    address: Type.Optional(Type.String({ description: "Where the request came from." })),
    traceId: TraceId,
    outcome: Type.String({ description: "What became of the write: applied, none, or unknown." }),
    detail: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
        description: "More where there is more to say, such as how approvals were judged.",
      }),
    ),
  },
  strict,
);

const AuditReply = Type.Object(
  {
    entries: Type.Array(AuditEntrySchema, { description: "In the order asked for." }),
    next: Type.Union([Sequence, Type.Null()], {
      description: "For `after`, if there may be more; null at the end, and with newest-first.",
    }),
    head: Head,
  },
  strict,
);

const KnownHead = (description: string) =>
  Type.Optional(Type.String({ pattern: "^[1-9][0-9]{0,15}:[0-9a-f]{64}$", description }));

const VerifyQuery = Type.Object(
  {
    anchor: KnownHead("A head that was kept elsewhere, as SEQUENCE:HASH: it must be part of the trail."),
    startAfter: KnownHead("For a trail whose older segments were archived: the head that they ended with."),
  },
  strict,
);

const VerifyReply = Type.Object(
  {
    ok: Type.Boolean({ description: "Whether every entry is proven." }),
    entries: Type.Optional(Type.Integer({ description: "How many were proven." })),
    head: Type.Optional(Head),
    entry: Type.Optional(Type.Integer({ description: "The first entry that is not proven." })),
    problem: Type.Optional(Type.String({ description: "What is wrong with it, in one word." })),
    message: Type.Optional(Type.String({ description: "What is wrong with it, in a sentence." })),
  },
  strict,
);

/** `verify` proves what `audit` answers from. */
export function auditRoutes(
  audit: AuditTrail,
  verify: (heads: Pick<VerifyOptions, "anchor" | "startAfter">) => Promise<AuditVerification>,
): readonly Route[] {
  const query = defineRoute({
    method: "GET",
    path: "/v1/audit",
    operationId: "queryAudit",
    size: "large",
    tag: "audit",
    summary: "Attempts and how they were decided",
    query: AuditQuerySchema,
    replies: { 200: { description: "Entries, oldest first unless asked otherwise.", schema: AuditReply } },
    examples: [{ summary: "The last ten", query: { limit: "10", order: "newest-first" }, status: 200 }],
    async handle({ query }, { principal }) {
      const { fromMs, untilMs, limit, order, after } = query;
      const filter: AuditQuery = {
        ...filterOf(principal, query),
        ...given({ fromMs, untilMs, limit, order, afterSequence: after }),
      };
      const head = audit.head();
      const entries = await audit.query(filter);
      const isMore = order !== "newest-first" && entries.length === (limit ?? DEFAULT_ENTRIES);
      const next = isMore ? (entries.at(-1)?.sequence ?? null) : null;
      return { status: 200, body: { entries, next, head } };
    },
  });
  const alone = oneAtATime("a verification");
  const check = defineRoute({
    method: "GET",
    path: "/v1/audit/verify",
    operationId: "verifyAudit",
    tag: "audit",
    summary: "Prove that no entry was changed, dropped, inserted or moved",
    description: "Reads the whole trail. Needs an API key for all tenants; one verification at a time.",
    query: VerifyQuery,
    replies: { 200: { description: "Proven, or the first entry that is not.", schema: VerifyReply } },
    examples: [{ summary: "Prove it", status: 200 }],
    async handle({ query: { anchor, startAfter } }, { principal }) {
      assertAllowedEverywhere(principal, "audit");
      const heads = given({ anchor: headOf(anchor), startAfter: headOf(startAfter) });
      const result = await alone(() => verify(heads));
      if (result.ok) return { status: 200, body: result };
      // Where the file lies is the operator's business.
      const { file: _file, line: _line, ...finding } = result;
      return { status: 200, body: finding };
    },
  });
  return [query, check];
}

const WATCH_SPEC: EventRoute["spec"] = {
  method: "GET",
  path: "/v1/audit/watch",
  operationId: "watchAudit",
  tag: "audit",
  summary: "Attempts and how they were decided, as they happen",
  description:
    "Server-sent events `decided` with an entry without its place in the chain as JSON data, and `missed` with the number of entries that a slow reader did not get. It does not resume: ask /v1/audit for what was before.",
  query: WatchQuerySchema,
  replies: {
    200: { description: "An endless stream.", contentType: "text/event-stream", schema: Type.String() },
  },
  examples: [],
};

export function auditWatchRoute(feed: DecisionFeed, maxBufferedBytes: number): EventRoute {
  return {
    spec: WATCH_SPEC,
    open: (query, principal) => {
      const filter = filterOf(principal, checkWatch(query));
      return { ...given({ tenant: filter.tenant }), source: decisionEvents(feed, filter, maxBufferedBytes) };
    },
  };
}

type FilterQuery = Static<typeof WatchQuerySchema>;

function filterOf(principal: Principal, query: FilterQuery): AuditFilter {
  const { tenant, name, holder, action, reason, allowed, caller, except } = query;
  return {
    ...scopeOf(principal, tenant, name),
    ...given({ key: name, holder, action, reason, allowed, caller, exceptActions: except?.split(",") }),
  };
}

function headOf(text: string | undefined): AuditHead | null {
  if (text === undefined) return null;
  const [sequence = "", hash = ""] = text.split(":");
  return { sequence: Number(sequence), hash };
}

function scopeOf(
  principal: Principal,
  named: string | undefined,
  name: string | undefined,
): { readonly tenant?: string } {
  if (named === "*") {
    assertAllowedEverywhere(principal, "audit");
    return {};
  }
  const tenant = tenantOf(principal, named);
  assertAllowed(principal, "audit", tenant, name ?? "");
  return { tenant };
}

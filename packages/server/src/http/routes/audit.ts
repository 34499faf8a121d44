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
import { Instant, LeaseId, Reason, ReasonCode, Sequence, TraceId } from "../../protocol/schemas/fields.ts";
import { Closed, Count, Described, Fact, OneOf, OrNull, Text, Whole } from "../../protocol/schemas/kinds.ts";
import { type DecisionFeed, decisionEvents } from "../../watch/decision-feed.ts";
import { defineEvents, defineRoute, type EventRoute, type Route } from "../route.ts";

const MAX_ENTRIES = 1_000;
const DEFAULT_ENTRIES = 100;

const filterFields = {
  tenant: Type.Optional(Text("The tenant, as elsewhere; `*` for all, if the API key is for all.")),
  name: Type.Optional(Text("Only this lease.")),
  holder: Type.Optional(Text("Only attempts of exactly this holder.")),
  action: Type.Optional(Text("Only one kind of attempt: grant, renew, release, use, expire, revoke.")),
  caller: Type.Optional(Text("Only requests with the API key of this id.")),
  except: Type.Optional(Text("Not these kinds of attempts: `renew,use`.")),
  reason: Type.Optional(Text("Only attempts that ended for this reason.")),
  allowed: Type.Optional(Fact("Only those that were allowed, or that were not.")),
};

const AuditQuerySchema = Closed({
  ...filterFields,
  fromMs: Type.Optional(Count("Not before this instant, in ms since 1970.")),
  untilMs: Type.Optional(Count("Before this instant, in ms since 1970.")),
  after: Type.Optional(Count("Only entries after this sequence.")),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_ENTRIES, description: "How many entries at most." }),
  ),
  order: Type.Optional(OneOf(["oldest-first", "newest-first"], "From which end; oldest-first.")),
});

const Hash = Text("SHA-256 over the entry and the hash before it, hexadecimal.");

const Head = Described("The last entry: keep it elsewhere, and nothing before it can be changed.", {
  sequence: Sequence,
  hash: Hash,
});

const WatchQuerySchema = Closed(filterFields);

const AuditEntrySchema = Closed({
  sequence: Sequence,
  previousHash: Text("The hash of the entry before."),
  hash: Hash,
  at: Instant,
  tenant: Text("Whose lease it was about."),
  key: Text("The lease's name."),
  leaseId: LeaseId,
  action: Text("What was attempted: grant, renew, release, use, expire, revoke."),
  allowed: Fact("How it was decided."),
  reason: Reason,
  reasonCode: ReasonCode,
  code: Type.Optional(Text("LS_OK, LS_EXPIRED, LS_STALE_USE, ...")),
  holder: Type.Optional(Text("Who attempted it, where it was said.")),
  fence: Type.Optional(Text("The grant's number, decimal, where there was one.")),
  purpose: Type.Optional(Text("The purpose that was named, where one was.")),
  caller: Type.Optional(Text("The id of the API key; `local` without keys.")),
  address: Type.Optional(Text("Where the request came from.")),
  traceId: TraceId,
  outcome: Text("What became of the write: applied, none, or unknown."),
  detail: Type.Optional(
    Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
      description: "More where there is more to say, such as how approvals were judged.",
    }),
  ),
});

const AuditReply = Closed({
  entries: Type.Array(AuditEntrySchema, { description: "In the order asked for." }),
  next: OrNull(Sequence, "For `after`, if there may be more; null at the end, and with newest-first."),
  head: Head,
});

const KnownHead = (description: string) =>
  Type.Optional(Type.String({ pattern: "^[1-9][0-9]{0,15}:[0-9a-f]{64}$", description }));

const VerifyQuery = Closed({
  anchor: KnownHead("A head that was kept elsewhere, as SEQUENCE:HASH: it must be part of the trail."),
  startAfter: KnownHead("For a trail whose older segments were archived: the head that they ended with."),
});

const VerifyReply = Closed({
  ok: Fact("Whether every entry is proven."),
  entries: Type.Optional(Whole("How many were proven.")),
  head: Type.Optional(Head),
  entry: Type.Optional(Whole("The first entry that is not proven.")),
  problem: Type.Optional(Text("What is wrong with it, in one word.")),
  message: Type.Optional(Text("What is wrong with it, in a sentence.")),
});

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
      return { entries, next, head };
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
      if (result.ok) return result;
      // Where the file lies is the operator's business.
      const { file: _file, line: _line, ...finding } = result;
      return finding;
    },
  });
  return [query, check];
}

export function auditWatchRoute(feed: DecisionFeed, maxBufferedBytes: number): EventRoute {
  const spec = {
    path: "/v1/audit/watch",
    operationId: "watchAudit",
    tag: "audit",
    summary: "Attempts and how they were decided, as they happen",
    description:
      "Server-sent events `decided` with an entry without its place in the chain as JSON data, and `missed` with the number of entries that a slow reader did not get. It does not resume: ask /v1/audit for what was before.",
    query: WatchQuerySchema,
  };
  return defineEvents(spec, (query, principal) => {
    const filter = filterOf(principal, query);
    return { ...given({ tenant: filter.tenant }), source: decisionEvents(feed, filter, maxBufferedBytes) };
  });
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

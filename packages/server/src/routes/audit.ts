/** GET /v1/audit and /v1/audit/verify: every attempt, and the proof that none was changed. */
import type { AuditQuery, AuditTrail } from "solehold/service";
import { Type } from "typebox";
import { assertAllowed, assertAllowedEverywhere, type Principal, tenantOf } from "../access/principal.ts";
import type { AuditLog } from "../audit-log.ts";
import { ProblemError, tooMany } from "../problem.ts";
import { defineRoute, type Route } from "../route.ts";

const strict = { additionalProperties: false } as const;
const MAX_ENTRIES = 1_000;

const AuditQuerySchema = Type.Object(
  {
    tenant: Type.Optional(
      Type.String({ description: "The tenant, as elsewhere; `*` for all, if the API key is for all." }),
    ),
    name: Type.Optional(Type.String({ description: "Only this lease." })),
    holder: Type.Optional(Type.String()),
    action: Type.Optional(Type.String({ description: "grant, renew, release, use, expire, ..." })),
    after: Type.Optional(Type.Integer({ minimum: 0, description: "Only entries after this sequence." })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_ENTRIES })),
    order: Type.Optional(Type.Enum(["oldest-first", "newest-first"])),
  },
  strict,
);

const Head = Type.Object({ sequence: Type.Integer(), hash: Type.String() }, strict);

const AuditEntrySchema = Type.Object({
  sequence: Type.Integer(),
  previousHash: Type.String(),
  hash: Type.String(),
  at: Type.Integer(),
  tenant: Type.String(),
  key: Type.String(),
  leaseId: Type.String(),
  action: Type.String(),
  allowed: Type.Boolean(),
  reason: Type.String(),
  reasonCode: Type.Integer(),
  holder: Type.Optional(Type.String()),
  fence: Type.Optional(Type.String()),
  purpose: Type.Optional(Type.String()),
  traceId: Type.String(),
  outcome: Type.String(),
});

const AuditReply = Type.Object({ entries: Type.Array(AuditEntrySchema) }, strict);

const VerifyReply = Type.Object({
  ok: Type.Boolean(),
  entries: Type.Optional(Type.Integer()),
  head: Type.Optional(Head),
  entry: Type.Optional(Type.Integer({ description: "The first entry that is not proven." })),
  problem: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
});

/** `log` proves what `audit` answers from. */
export function auditRoutes(audit: AuditTrail, log: Pick<AuditLog, "verify">): readonly Route[] {
  const query = defineRoute({
    method: "GET",
    path: "/v1/audit",
    operationId: "queryAudit",
    tag: "audit",
    summary: "Attempts and how they were decided",
    query: AuditQuerySchema,
    replies: { 200: { description: "Entries, oldest first unless asked otherwise.", schema: AuditReply } },
    examples: [{ summary: "The last ten", query: { limit: "10", order: "newest-first" }, status: 200 }],
    async handle({ query: { tenant: named, name, after, ...rest } }, { principal }) {
      const where = scopeOf(principal, named, name);
      const filter: AuditQuery = {
        ...where,
        ...(rest as Omit<AuditQuery, "tenant">),
        ...(name === undefined ? {} : { key: name }),
        ...(after === undefined ? {} : { afterSequence: after }),
      };
      return { status: 200, body: { entries: await audit.query(filter) } };
    },
  });
  let underWay = false;
  const check = defineRoute({
    method: "GET",
    path: "/v1/audit/verify",
    operationId: "verifyAudit",
    tag: "audit",
    summary: "Prove that no entry was changed, dropped, inserted or moved",
    description: "Reads the whole trail. Needs an API key for all tenants; one verification at a time.",
    replies: { 200: { description: "Proven, or the first entry that is not.", schema: VerifyReply } },
    examples: [{ summary: "Prove it", status: 200 }],
    async handle(_input, { principal }) {
      assertAllowedEverywhere(principal, "audit");
      if (underWay) throw new ProblemError(tooMany("a verification is under way", 1_000));
      underWay = true;
      try {
        const result = await log.verify();
        if (result.ok) return { status: 200, body: result };
        // Where the file lies is the operator's business.
        const { file: _file, line: _line, ...finding } = result;
        return { status: 200, body: finding };
      } finally {
        underWay = false;
      }
    },
  });
  return [query, check];
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

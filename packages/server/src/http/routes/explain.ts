/** POST /v1/leases/explain: what would be decided about a command now, and why. Nothing is carried out; it is audited. */
import type { Explanation, LeaseOp } from "solehold/internal";
import {
  type CommandBody,
  decodeRequest,
  type LeaseService,
  leaseId,
  leaseIdOf,
  reasonCode,
  serviceCodeOf,
} from "solehold/internal";
import { Type } from "typebox";
import { contextOf } from "../../access/call.ts";
import { leaseKeyFor } from "../../access/principal.ts";
import { COMMAND_CHECKS, COMMAND_SCHEMAS } from "../../commands/command-handler.ts";
import { ProblemError, refusal } from "../../protocol/problem.ts";
import { denial, Instant, Reason, ReasonCode, TraceId } from "../../protocol/schemas/fields.ts";
import { Described, Fact, OneOf, strict, Text } from "../../protocol/schemas/kinds.ts";
import type { Route } from "../route.ts";

const OPS = Object.keys(COMMAND_SCHEMAS) as readonly LeaseOp[];

const ExplainBody = Type.Union(
  OPS.map((op) =>
    Type.Object({ op: Type.Literal(op), ...COMMAND_SCHEMAS[op].properties }, { ...strict, title: op }),
  ),
  { description: "A command as its own route takes it, and in `op` which one." },
);

const ExplainReply = Described("The policy bundle, and the decision that follows from it.", {
  bundle: Described("What is true of the command against the lease.", {
    leaseExists: Fact("A lease is there, live or expired."),
    leaseExpired: Fact("Its time is over."),
    ownerMatch: Fact("The caller names its holder."),
    tokenMatch: Fact("The token is that of the current grant."),
    ttlInBounds: Fact("The ttl is within the policy's bounds."),
    grantEligible: Fact("Nothing in the policy stands against it."),
    reason: Reason,
    reasonCode: ReasonCode,
  }),
  decision: OneOf(["granted", "denied", "refused"], "What would be answered."),
  reason: Reason,
  reasonCode: ReasonCode,
  code: Text("LS_OK, LS_HELD, LS_EXPIRED, ..."),
  ...denial,
  field: Type.Optional(Text("Which part of the command has to be corrected.")),
  message: Type.Optional(Text("How.")),
  resumeFromLedgerRequired: Fact(
    "The last holder did not finish: rebuild from persisted state before acting.",
  ),
  storeTimeMs: Instant,
  traceId: TraceId,
});

const owner = { name: "reports/nightly", holder: "worker-1", token: "example-token-1" };

export function explainRoute(service: LeaseService): Route {
  return {
    spec: {
      method: "POST",
      path: "/v1/leases/explain",
      operationId: "explain",
      tag: "leases",
      summary: "What would be decided about a command, and why",
      description: "Needs the same right as the command. Quotas and approvals are not looked at.",
      body: ExplainBody,
      replies: { 200: { description: "The bundle and the decision.", schema: ExplainReply } },
      examples: [{ summary: "May it be renewed?", body: { op: "renew", ...owner }, status: 200 }],
    },
    async run(body, _query, call) {
      const { op, ...rest } = (body ?? {}) as { readonly op?: unknown };
      if (!OPS.includes(op as LeaseOp))
        throw new ProblemError(refusal("op", `must be one of ${OPS.join(", ")}`));
      const command = COMMAND_CHECKS[op as LeaseOp](rest) as CommandBody;
      const request = decodeRequest(
        op as LeaseOp,
        leaseKeyFor(call.principal, op as LeaseOp, command),
        command,
      );
      const explained = await service.explain(request, contextOf(call));
      const { bundle, decision } = explained;
      if (bundle === null && decision.kind === "refused")
        throw new ProblemError(refusal(decision.field, decision.message));
      return { status: 200, body: { ...answerOf(request, explained), traceId: call.traceId } };
    },
  };
}

type Explained = Parameters<LeaseService["explain"]>[0];

function answerOf({ op, key }: Explained, { bundle, decision, storeTimeMs }: Explanation): object {
  const { reason } = decision;
  const facts = bundle === null ? {} : { bundle: bundleFields(bundle) };
  const resumeFromLedgerRequired = decision.kind === "granted" && decision.resumeFromLedgerRequired;
  const common = {
    ...facts,
    decision: decision.kind,
    reason,
    reasonCode: reasonCode(reason),
    resumeFromLedgerRequired,
    storeTimeMs,
  };
  if (decision.kind === "granted") return { ...common, code: "LS_OK", leaseId: leaseIdOf(decision.lease) };
  const code = serviceCodeOf(op, { kind: "refused", decision, storeTimeMs });
  if (decision.kind === "refused")
    return { ...common, code, field: decision.field, message: decision.message };
  const { heldBy, heldUntilMs, fence, mismatch } = decision;
  const id = fence === null ? {} : { leaseId: leaseId(key, fence) };
  return { ...common, code, ...id, heldBy, heldUntilMs, ...mismatch };
}

function bundleFields(bundle: NonNullable<Explanation["bundle"]>): object {
  const { leaseExists, leaseExpired, ownerMatch, tokenMatch, ttlInBounds, grantEligible, reason } = bundle;
  const facts = { leaseExists, leaseExpired, ownerMatch, tokenMatch, ttlInBounds, grantEligible };
  return { ...facts, reason, reasonCode: reasonCode(reason) };
}

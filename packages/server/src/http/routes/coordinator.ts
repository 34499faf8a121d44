/** POST /v1/coordinator/select and /v1/quorum/verify: the coordinator's pure decisions, for any client. */
import type { Env } from "solehold/internal";
import {
  type Approval,
  delay,
  Quorum,
  type QuorumConfig,
  SELECTION_ALGORITHMS,
  selectCoordinator,
  verifyQuorumInSteps,
} from "solehold/internal";
import { type Static, Type } from "typebox";
import { oneAtATime } from "../../access/one-at-a-time.ts";
import { assertAction, assertAllowed, tenantOf } from "../../access/principal.ts";
import { ProblemError, refusal } from "../../protocol/problem.ts";
import { Approvals, LeaseId, NotAfter, NotBefore, SignerId, TraceId } from "../../protocol/schemas/fields.ts";
import { Closed, Described, Fact, OneOf, Text, Whole } from "../../protocol/schemas/kinds.ts";
import { defineRoute, type Route } from "../route.ts";

/** A whole number in 64 bits: as a number up to 2^53, else as a decimal string. */
const Weight = Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: "^[0-9]{1,20}$" })], {
  description: "Its share of the keys: a whole number in 64 bits; as a decimal string above 2^53.",
});
const NodeId = Text("The node's name.");
const Algorithm = { description: "How the choice is made; the first of these when not given." };
const MAX_CANDIDATES = 1_000;

const SelectBody = Closed({
  leaseId: LeaseId,
  candidates: Type.Array(Closed({ nodeId: NodeId, weight: Weight }), {
    maxItems: MAX_CANDIDATES,
    description: "Those who could coordinate it, in any order.",
  }),
  algorithm: Type.Optional(Type.Enum([...SELECTION_ALGORITHMS], Algorithm)),
});

const WeightText = Text("Its weight, decimal.");

const SelectReply = Closed({
  selected: Text("The node that coordinates the lease."),
  candidates: Type.Array(Closed({ nodeId: NodeId, weight: WeightText }), {
    description: "The eligible ones, ordered by the UTF-8 bytes of their ids.",
  }),
  algorithm: Text("How the choice was made."),
  leaseId: LeaseId,
  traceId: TraceId,
});

/** A quorum that comes with the request is checked key by key, which costs the server, not the caller. */
const MAX_REQUEST_SIGNERS = 16;
const MAX_REQUEST_KEYS = 2;
const MAX_VERIFY_BYTES = 16_384;

const QuorumSchema = Described(
  "Who may sign, and how many must. Without it, the quorum that the server was started with.",
  {
    signers: Type.Array(
      Closed({
        signerId: Text("The signer's name."),
        keys: Type.Array(
          Closed({
            publicKey: Text("A raw Ed25519 public key, 43 characters of base64url."),
            notBeforeMs: Type.Optional(NotBefore),
            notAfterMs: Type.Optional(NotAfter),
          }),
          {
            maxItems: MAX_REQUEST_KEYS,
            description: "The signer's keys: old ones beside new ones while they are changed.",
          },
        ),
      }),
      { maxItems: MAX_REQUEST_SIGNERS, description: "Those whose approval counts." },
    ),
    thresholds: Type.Optional(
      Described("How many distinct signers each tier needs.", {
        standard: Whole("How many for the tier Standard."),
        risky: Whole("How many for the tier Risky."),
        dangerous: Whole("How many for the tier Dangerous."),
      }),
    ),
    mode: Type.Optional(
      OneOf(
        ["strict", "lenient"],
        "Whether one invalid approval spoils the others (strict) or only does not count.",
      ),
    ),
  },
);

const VerifyBody = Closed({
  leaseId: LeaseId,
  quorum: Type.Optional(QuorumSchema),
  request: Described("What the signatures must cover.", {
    tenant: Text("Whose lease."),
    key: Text("The lease's name."),
    holder: Text("For whom."),
    purpose: Text("For which purpose."),
    tier: Text("Standard, Risky or Dangerous; any other counts as Dangerous."),
    action: Text("What shall be done: acquire, revoke or break."),
    ttlMs: Whole("For how long; 0 where that says nothing."),
    nonce: Text("The request's own; it makes the approvals good for one use."),
  }),
  approvals: Approvals,
  nowMs: Type.Optional(Whole("Verify as of then; without it, now.")),
});

const VerifyReply = Type.Object({
  leaseId: LeaseId,
  tier: Text("The tier that was applied."),
  required: Whole("How many approvals the tier needs."),
  received: Whole("How many valid ones of distinct signers there are."),
  passed: Fact("Whether these are enough."),
  failures: Type.Array(
    Type.Object({
      kind: Text("The class of the failure."),
      code: Text("What exactly is wrong."),
    }),
    { description: "Why approvals did not count." },
  ),
  failuresOmitted: Whole("How many failures are not listed."),
  accepted: Type.Array(
    Type.Object({
      signerId: SignerId,
      approvalId: Text("Names the approval in the audit."),
      notAfterMs: NotAfter,
    }),
    { description: "Approvals that count." },
  ),
  traceId: TraceId,
  timestamp: Text("As of when it was verified, ISO 8601."),
  quorumFrom: OneOf(["request", "server"], "Whose quorum was applied."),
});

const APPROVAL_REQUEST = {
  tenant: "default",
  key: "db/main",
  holder: "worker-1",
  purpose: "Operation",
  tier: "Standard",
  action: "revoke",
  ttlMs: 0,
  nonce: "example-nonce-0001",
};

export function coordinatorRoutes(env: Env, serverQuorum: Quorum | null): readonly Route[] {
  const select = defineRoute({
    method: "POST",
    path: "/v1/coordinator/select",
    operationId: "selectCoordinator",
    size: "large",
    tag: "coordinator",
    summary: "Which node coordinates a lease",
    body: SelectBody,
    replies: {
      200: { description: "The same candidates always give the same answer.", schema: SelectReply },
    },
    examples: [
      {
        summary: "Three nodes",
        body: {
          leaseId: "lease-1",
          candidates: [
            { nodeId: "node-a", weight: 10 },
            { nodeId: "node-b", weight: 5 },
            { nodeId: "node-c", weight: "8" },
          ],
        },
        status: 200,
      },
      { summary: "Nobody", body: { leaseId: "lease-1", candidates: [] }, status: 400 },
    ],
    async handle({ body }, { principal, traceId }) {
      assertAction(principal, "coordinate");
      const candidates = body.candidates.map(({ nodeId, weight }) => ({ nodeId, weight: BigInt(weight) }));
      const { algorithm } = body;
      const chosen =
        algorithm === undefined ? {} : { algorithm: algorithm as (typeof SELECTION_ALGORITHMS)[number] };
      const selection = selectCoordinator({ candidates, leaseId: body.leaseId, traceId, ...chosen });
      if (!selection.ok) {
        const { code, field, message } = selection;
        const facts = { field, coordinatorCode: code };
        throw new ProblemError({ reason: "SELECTION_REFUSED", detail: `${field} ${message}`, facts });
      }
      const { ok: _ok, ...reply } = selection;
      const wire = reply.candidates.map(({ nodeId, weight }) => ({ nodeId, weight: weight.toString() }));
      return { ...reply, candidates: wire };
    },
  });
  const alone = oneAtATime("a verification for this API key");
  const verified = async (body: Static<typeof VerifyBody>, traceId: string): Promise<object> => {
    const { quorum: given, nowMs = Math.floor(env.wallMs()), leaseId, request } = body;
    const quorum = given === undefined ? serverQuorum : defineQuorum(given as QuorumConfig);
    if (quorum === null) {
      const message = "is missing: this server was started without one (--quorum-file)";
      throw new ProblemError(refusal("quorum", message));
    }
    const approvals: readonly Approval[] = body.approvals;
    const input = { quorum, leaseId, request, approvals, nowMs, traceId };
    // Other requests get their turn between the signatures.
    const verification = await verifyQuorumInSteps(input, () => delay(env, 0));
    return { ...verification, quorumFrom: given === undefined ? "server" : "request" };
  };
  const verify = defineRoute({
    method: "POST",
    path: "/v1/quorum/verify",
    operationId: "verifyQuorum",
    tag: "coordinator",
    summary: "Whether enough signers approved a request",
    description: `At most ${MAX_VERIFY_BYTES} bytes, and one at a time for each API key.`,
    body: VerifyBody,
    bodyLimitBytes: MAX_VERIFY_BYTES,
    replies: { 200: { description: "Passed or not, with every failure classified.", schema: VerifyReply } },
    examples: [
      {
        summary: "No approvals",
        body: {
          leaseId: "default/db/main",
          quorum: {
            signers: [
              { signerId: "alice", keys: [{ publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] },
            ],
            thresholds: { standard: 1, risky: 1, dangerous: 1 },
          },
          request: APPROVAL_REQUEST,
          approvals: [],
        },
        status: 200,
      },
    ],
    async handle({ body }, { principal, traceId }) {
      assertAllowed(principal, "coordinate", tenantOf(principal, body.request.tenant), body.request.key);
      return await alone(() => verified(body, traceId), principal.id);
    },
  });
  return [select, verify];
}

function defineQuorum(config: QuorumConfig): Quorum {
  const defined = Quorum.define(config);
  if (defined.ok) return defined.quorum;
  const [first] = defined.problems;
  throw new ProblemError(refusal(`quorum.${first?.field ?? ""}`, first?.message ?? "cannot be used"));
}

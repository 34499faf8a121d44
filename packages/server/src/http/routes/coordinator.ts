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
import {
  Approvals,
  LeaseId,
  NotAfter,
  NotBefore,
  SignerId,
  strict,
  TraceId,
} from "../../protocol/schemas/fields.ts";
import { defineRoute, type Route } from "../route.ts";

/** A whole number in 64 bits: as a number up to 2^53, else as a decimal string. */
const Weight = Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: "^[0-9]{1,20}$" })], {
  description: "Its share of the keys: a whole number in 64 bits; as a decimal string above 2^53.",
});
const NodeId = Type.String({ description: "The node's name." });
const Algorithm = { description: "How the choice is made; the first of these when not given." };
const MAX_CANDIDATES = 1_000;

const SelectBody = Type.Object(
  {
    leaseId: LeaseId,
    candidates: Type.Array(Type.Object({ nodeId: NodeId, weight: Weight }, strict), {
      maxItems: MAX_CANDIDATES,
      description: "Those who could coordinate it, in any order.",
    }),
    algorithm: Type.Optional(Type.Enum([...SELECTION_ALGORITHMS], Algorithm)),
  },
  strict,
);

const WeightText = Type.String({ description: "Its weight, decimal." });

const SelectReply = Type.Object(
  {
    selected: Type.String({ description: "The node that coordinates the lease." }),
    candidates: Type.Array(Type.Object({ nodeId: NodeId, weight: WeightText }, strict), {
      description: "The eligible ones, ordered by the UTF-8 bytes of their ids.",
    }),
    algorithm: Type.String({ description: "How the choice was made." }),
    leaseId: LeaseId,
    traceId: TraceId,
  },
  strict,
);

/** A quorum that comes with the request is checked key by key, which costs the server, not the caller. */
const MAX_REQUEST_SIGNERS = 16;
const MAX_REQUEST_KEYS = 2;
const MAX_VERIFY_BYTES = 16_384;

const QuorumSchema = Type.Object(
  {
    signers: Type.Array(
      Type.Object(
        {
          signerId: Type.String({ description: "The signer's name." }),
          keys: Type.Array(
            Type.Object(
              {
                publicKey: Type.String({
                  description: "A raw Ed25519 public key, 43 characters of base64url.",
                }),
                notBeforeMs: Type.Optional(NotBefore),
                notAfterMs: Type.Optional(NotAfter),
              },
              strict,
            ),
            {
              maxItems: MAX_REQUEST_KEYS,
              description: "The signer's keys: old ones beside new ones while they are changed.",
            },
          ),
        },
        strict,
      ),
      { maxItems: MAX_REQUEST_SIGNERS, description: "Those whose approval counts." },
    ),
    thresholds: Type.Optional(
      Type.Object(
        {
          standard: Type.Integer({ description: "How many for the tier Standard." }),
          risky: Type.Integer({ description: "How many for the tier Risky." }),
          dangerous: Type.Integer({ description: "How many for the tier Dangerous." }),
        },
        { ...strict, description: "How many distinct signers each tier needs." },
      ),
    ),
    mode: Type.Optional(
      Type.Enum(["strict", "lenient"], {
        description: "Whether one invalid approval spoils the others (strict) or only does not count.",
      }),
    ),
  },
  {
    ...strict,
    description: "Who may sign, and how many must. Without it, the quorum that the server was started with.",
  },
);

const VerifyBody = Type.Object(
  {
    leaseId: LeaseId,
    quorum: Type.Optional(QuorumSchema),
    request: Type.Object(
      {
        tenant: Type.String({ description: "Whose lease." }),
        key: Type.String({ description: "The lease's name." }),
        holder: Type.String({ description: "For whom." }),
        purpose: Type.String({ description: "For which purpose." }),
        tier: Type.String({ description: "Standard, Risky or Dangerous; any other counts as Dangerous." }),
        action: Type.String({ description: "What shall be done: acquire, revoke or break." }),
        ttlMs: Type.Integer({ description: "For how long; 0 where that says nothing." }),
        nonce: Type.String({ description: "The request's own; it makes the approvals good for one use." }),
      },
      { ...strict, description: "What the signatures must cover." },
    ),
    approvals: Approvals,
    nowMs: Type.Optional(Type.Integer({ description: "Verify as of then; without it, now." })),
  },
  strict,
);

const VerifyReply = Type.Object({
  leaseId: LeaseId,
  tier: Type.String({ description: "The tier that was applied." }),
  required: Type.Integer({ description: "How many approvals the tier needs." }),
  received: Type.Integer({ description: "How many valid ones of distinct signers there are." }),
  passed: Type.Boolean({ description: "Whether these are enough." }),
  failures: Type.Array(
    Type.Object({
      kind: Type.String({ description: "The class of the failure." }),
      code: Type.String({ description: "What exactly is wrong." }),
    }),
    { description: "Why approvals did not count." },
  ),
  failuresOmitted: Type.Integer({ description: "How many failures are not listed." }),
  accepted: Type.Array(
    Type.Object({
      signerId: SignerId,
      approvalId: Type.String({ description: "Names the approval in the audit." }),
      notAfterMs: NotAfter,
    }),
    { description: "Approvals that count." },
  ),
  traceId: TraceId,
  timestamp: Type.String({ description: "As of when it was verified, ISO 8601." }),
  quorumFrom: Type.Enum(["request", "server"], { description: "Whose quorum was applied." }),
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
      return { status: 200, body: { ...reply, candidates: wire } };
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
      return { status: 200, body: await alone(() => verified(body, traceId), principal.id) };
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

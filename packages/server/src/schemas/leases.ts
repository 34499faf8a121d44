/** The shapes of lease commands and their replies. OpenAPI, the HTTP routes and the stream all read these. */
import { type Static, Type } from "typebox";
import {
  Decimal,
  Fence,
  Holder,
  IdempotencyKey,
  Instant,
  Name,
  Note,
  NullableInstant,
  Purpose,
  Tenant,
  Token,
  TtlMs,
} from "./fields.ts";

const strict = { additionalProperties: false } as const;

const target = { tenant: Type.Optional(Tenant), name: Name };
const repeatable = { idempotencyKey: Type.Optional(IdempotencyKey) };
const generation = Decimal("Only the grant with this generation.");
const owner = {
  ...target,
  holder: Holder,
  token: Token,
  generation: Type.Optional(generation),
  ...repeatable,
};
const term = Decimal("The replication term.");

const approval = Type.Object(
  {
    nonce: Type.String({ description: "The request's own nonce, which the signatures cover." }),
    approvals: Type.Array(
      Type.Object(
        {
          signerId: Type.String(),
          notBeforeMs: Type.Integer(),
          notAfterMs: Type.Integer(),
          signature: Type.String({ description: "Ed25519, base64url." }),
        },
        strict,
      ),
      { maxItems: 512 },
    ),
  },
  { ...strict, description: "Consent of signers to this very request, for keys under an approval rule." },
);
/** Commands that a rule can guard. */
const guarded = { approval: Type.Optional(approval) };

export const AcquireBody = Type.Object(
  {
    ...target,
    holder: Holder,
    ttlMs: Type.Optional(TtlMs),
    waitMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: "How long to wait in line for a lease that somebody else has. 0: answer at once.",
      }),
    ),
    purpose: Type.Optional(Purpose),
    token: Type.Optional(Token),
    term: Type.Optional(term),
    note: Type.Optional(Note),
    ...repeatable,
    ...guarded,
  },
  strict,
);

export const RenewBody = Type.Object(
  { ...owner, ttlMs: Type.Optional(TtlMs), term: Type.Optional(term) },
  strict,
);
export const ReleaseBody = Type.Object(owner, strict);
export const UseBody = Type.Object({ ...owner, purpose: Purpose }, strict);
export const ResumeBody = Type.Object(owner, strict);
export const HandoffBody = Type.Object(
  {
    ...owner,
    successor: Type.String({ description: "The only holder who may take it until the deadline." }),
    withinMs: Type.Integer({ description: "How long the successor has." }),
  },
  strict,
);
export const RevokeBody = Type.Object(
  { ...target, generation: Type.Optional(generation), ...repeatable, ...guarded },
  strict,
);
export const BreakBody = Type.Object(
  {
    ...target,
    periodMs: Type.Integer({ description: "No renewal reaches past now + periodMs." }),
    generation: Type.Optional(generation),
    ...repeatable,
    ...guarded,
  },
  strict,
);

export type AcquireInput = Static<typeof AcquireBody>;
export type RenewInput = Static<typeof RenewBody>;
export type OwnerInput = Static<typeof ReleaseBody>;
export type UseInput = Static<typeof UseBody>;
export type HandoffInput = Static<typeof HandoffBody>;
export type RevokeInput = Static<typeof RevokeBody>;
export type BreakInput = Static<typeof BreakBody>;

export const LeaseSchema = Type.Object(
  {
    tenant: Type.String(),
    name: Type.String(),
    holder: Type.String(),
    purpose: Purpose,
    fence: Fence,
    term: Type.String(),
    generation: Type.String(),
    state: Type.Enum(["held", "released", "revoked"]),
    live: Type.Boolean({ description: "Held and not expired." }),
    phase: Type.Enum(["active", "grace", "expired"]),
    ttlMs: Type.Integer(),
    grantedAtMs: Instant,
    renewedAtMs: Instant,
    expiresAtMs: Instant,
    endedAtMs: NullableInstant,
    remainingMs: Type.Integer(),
    renewals: Type.Integer(),
    resumeRequired: Type.Boolean(),
    breakAtMs: NullableInstant,
    handoff: Type.Union([
      Type.Object({ successor: Type.String(), deadlineMs: Type.Integer() }, strict),
      Type.Null(),
    ]),
    note: Type.String(),
  },
  { ...strict, description: "A lease as anybody who may read it sees it." },
);

export type WireLease = Static<typeof LeaseSchema>;

export const GrantedReplySchema = Type.Object(
  {
    outcome: Type.Literal("applied"),
    lease: LeaseSchema,
    token: Type.Optional(Type.String({ description: "Only in the answer to an acquire. Keep it secret." })),
    validForMs: Type.Integer({
      description: "How long the lease lasts, counted from when the caller SENT the request (plus waitedMs).",
    }),
    waitedMs: Type.Integer({
      description: "How long the request waited in line here before it was granted.",
    }),
    storeTimeMs: Instant,
    resumeFromLedgerRequired: Type.Boolean({
      description: "The last holder did not finish: rebuild from persisted state before acting.",
    }),
    replayed: Type.Boolean({ description: "This answer was given before; nothing new was granted." }),
    leaseId: Type.String(),
    reason: Type.String(),
    reasonCode: Type.Integer(),
    code: Type.String(),
    traceId: Type.String(),
  },
  strict,
);

export type GrantedReply = Static<typeof GrantedReplySchema>;

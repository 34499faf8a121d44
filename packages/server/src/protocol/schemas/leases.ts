/** The shapes of lease commands and their replies. OpenAPI, the HTTP routes and the stream all read these. */
import { MAX_LEASES_IN_SET } from "solehold/internal";
import { Type } from "typebox";
import {
  Approvals,
  Decimal,
  Fence,
  HoldAtLeastMs,
  Holder,
  IdempotencyKey,
  Instant,
  LeaseId,
  LockDelayMs,
  Metadata,
  Name,
  Note,
  NullableInstant,
  Priority,
  Purpose,
  Reason,
  ReasonCode,
  Slots,
  strict,
  Tenant,
  Token,
  TraceId,
  TtlMs,
} from "./fields.ts";

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
    approvals: Approvals,
  },
  { ...strict, description: "Consent of signers to this very request, for keys under an approval rule." },
);
/** Commands that a rule can guard. */
const guarded = { approval: Type.Optional(approval) };

const grant = {
  holder: Holder,
  ttlMs: Type.Optional(TtlMs),
  purpose: Type.Optional(Purpose),
  token: Type.Optional(Token),
  term: Type.Optional(term),
  note: Type.Optional(Note),
  metadata: Type.Optional(Metadata),
  slots: Type.Optional(Slots),
  lockDelayMs: Type.Optional(LockDelayMs),
  ...repeatable,
};

export const AcquireBody = Type.Object(
  {
    ...target,
    ...grant,
    waitMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: "How long to wait in the queue for a lease that another has. 0: answer at once.",
      }),
    ),
    priority: Type.Optional(Priority),
    holdAtLeastMs: Type.Optional(HoldAtLeastMs),
    ...guarded,
  },
  strict,
);

/** Each of the other fields is for each of the names. What is for one lease alone, or for a wait, is not there. */
export const AcquireAllBody = Type.Object(
  {
    tenant: target.tenant,
    names: Type.Array(Name, {
      minItems: 1,
      maxItems: MAX_LEASES_IN_SET,
      uniqueItems: true,
      description:
        "All of them are granted, or none: what was granted before another is refused is released again. Without waiting: to wait, acquire one name after the other, in the order of names.",
    }),
    ...grant,
  },
  strict,
);

export const RenewBody = Type.Object(
  {
    ...owner,
    ttlMs: Type.Optional({ ...TtlMs, description: "From now on. The lease's own ttl when it is left out." }),
    term: Type.Optional(term),
  },
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

export const LeaseSchema = Type.Object(
  {
    leaseId: LeaseId,
    tenant: Type.String({ description: "Whose it is." }),
    name: Type.String({ description: "What is leased." }),
    slotOf: Type.String({
      description: "The name that was asked for. Leases that have it in common are the slots of one thing.",
    }),
    slot: Type.Integer({ description: "Which slot of it, from 0; 0 for a lease without slots." }),
    holder: Type.String({ description: "Who holds it, or held it last." }),
    purpose: Purpose,
    fence: Fence,
    term: Type.String({ description: "The fence's higher part, decimal; 0 where nobody uses terms." }),
    generation: Type.String({ description: "The fence's lower part, decimal: grows with every grant." }),
    state: Type.Enum(["held", "released", "revoked"], {
      description: "What was last done; an expired lease stays held until somebody takes it.",
    }),
    live: Type.Boolean({ description: "Held and not expired." }),
    phase: Type.Enum(["active", "grace", "expired"], {
      description: "Where it is in its life; under a policy with a grace period that comes before its end.",
    }),
    ttlMs: Type.Integer({ description: "The longest ttl of this grant." }),
    grantedAtMs: Instant,
    renewedAtMs: Instant,
    expiresAtMs: Instant,
    endedAtMs: NullableInstant("When it was released or revoked; null while it was not."),
    remainingMs: Type.Integer({ description: "How long it lasts without a renewal; 0 when it is over." }),
    renewals: Type.Integer({ description: "How often this grant was renewed." }),
    resumeRequired: Type.Boolean({
      description: "Work must be rebuilt from persisted state before the lease may be used.",
    }),
    breakAtMs: NullableInstant("Somebody asked for it: no renewal reaches past this instant."),
    minHoldUntilMs: NullableInstant(
      "Nobody may claim the key before this instant, even if the lease has ended.",
    ),
    lockDelayMs: Type.Integer({ description: "For how long after an expiry nobody may claim the key." }),
    handoff: Type.Union(
      [
        Type.Object(
          {
            successor: Type.String({ description: "Who may take it until the deadline." }),
            deadlineMs: Instant,
          },
          strict,
        ),
        Type.Null(),
      ],
      { description: "To whom it is being handed; null when to nobody." },
    ),
    reservation: Type.Union(
      [
        Type.Object({ ticket: Type.String({ description: "Of the waiter." }), deadlineMs: Instant }, strict),
        Type.Null(),
      ],
      { description: "For which waiter it is kept; null when for none." },
    ),
    note: Type.String({ description: "Free text for people; empty when there is none." }),
    metadata: Metadata,
  },
  { ...strict, description: "A lease as anybody who may read it sees it." },
);

export const GrantedReplySchema = Type.Object(
  {
    outcome: Type.Literal("applied"),
    lease: LeaseSchema,
    token: Type.Optional(Type.String({ description: "Only in the answer to an acquire. Keep it secret." })),
    validForMs: Type.Integer({
      description: "How long the lease lasts, counted from when the caller SENT the request (plus waitedMs).",
    }),
    waitedMs: Type.Integer({
      description: "How long the request waited in the queue here before it was granted.",
    }),
    storeTimeMs: Instant,
    resumeFromLedgerRequired: Type.Boolean({
      description: "The last holder did not finish: rebuild from persisted state before acting.",
    }),
    replayed: Type.Boolean({ description: "This answer was given before; nothing new was granted." }),
    leaseId: LeaseId,
    reason: Reason,
    reasonCode: ReasonCode,
    code: Type.String({ description: "LS_OK." }),
    traceId: TraceId,
  },
  { ...strict, description: "The command was carried out." },
);

export const GrantedAllReplySchema = Type.Object(
  {
    grants: Type.Array(GrantedReplySchema, {
      description: "One for each name, in the order given, each with its own fence and token.",
    }),
  },
  strict,
);

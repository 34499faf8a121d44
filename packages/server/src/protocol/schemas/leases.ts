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
  Token,
  TraceId,
  TtlMs,
  target,
} from "./fields.ts";
import { Closed, Count, Described, Fact, OneOf, OrNull, Text, Whole } from "./kinds.ts";

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

const approval = Described("Consent of signers to this very request, for keys under an approval rule.", {
  nonce: Text("The request's own nonce, which the signatures cover."),
  approvals: Approvals,
});
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

export const AcquireBody = Closed({
  ...target,
  ...grant,
  waitMs: Type.Optional(
    Count("How long to wait in the queue for a lease that another has. 0: answer at once."),
  ),
  priority: Type.Optional(Priority),
  holdAtLeastMs: Type.Optional(HoldAtLeastMs),
  ...guarded,
});

/** Each of the other fields is for each of the names. What is for one lease alone, or for a wait, is not there. */
export const AcquireAllBody = Closed({
  tenant: target.tenant,
  names: Type.Array(Name, {
    minItems: 1,
    maxItems: MAX_LEASES_IN_SET,
    uniqueItems: true,
    description:
      "All of them are granted, or none: what was granted before another is refused is released again. Without waiting: to wait, acquire one name after the other, in the order of names.",
  }),
  ...grant,
});

export const RenewBody = Closed({
  ...owner,
  ttlMs: Type.Optional({ ...TtlMs, description: "From now on. The lease's own ttl when it is left out." }),
  term: Type.Optional(term),
});
export const ReleaseBody = Closed(owner);
export const UseBody = Closed({ ...owner, purpose: Purpose });
export const ResumeBody = Closed(owner);
export const HandoffBody = Closed({
  ...owner,
  successor: Text("The only holder who may take it until the deadline."),
  withinMs: Whole("How long the successor has."),
});
export const RevokeBody = Closed({
  ...target,
  generation: Type.Optional(generation),
  ...repeatable,
  ...guarded,
});
export const BreakBody = Closed({
  ...target,
  periodMs: Whole("No renewal reaches past now + periodMs."),
  generation: Type.Optional(generation),
  ...repeatable,
  ...guarded,
});

export const LeaseSchema = Described("A lease as anybody who may read it sees it.", {
  leaseId: LeaseId,
  tenant: Text("Whose it is."),
  name: Text("What is leased."),
  slotOf: Text("The name that was asked for. Leases that have it in common are the slots of one thing."),
  slot: Whole("Which slot of it, from 0; 0 for a lease without slots."),
  holder: Text("Who holds it, or held it last."),
  purpose: Purpose,
  fence: Fence,
  term: Text("The fence's higher part, decimal; 0 where nobody uses terms."),
  generation: Text("The fence's lower part, decimal: grows with every grant."),
  state: OneOf(
    ["held", "released", "revoked"],
    "What was last done; an expired lease stays held until somebody takes it.",
  ),
  live: Fact("Held and not expired."),
  phase: OneOf(
    ["active", "grace", "expired"],
    "Where it is in its life; under a policy with a grace period that comes before its end.",
  ),
  ttlMs: Whole("The longest ttl of this grant."),
  grantedAtMs: Instant,
  renewedAtMs: Instant,
  expiresAtMs: Instant,
  endedAtMs: NullableInstant("When it was released or revoked; null while it was not."),
  remainingMs: Whole("How long it lasts without a renewal; 0 when it is over."),
  renewals: Whole("How often this grant was renewed."),
  resumeRequired: Fact("Work must be rebuilt from persisted state before the lease may be used."),
  breakAtMs: NullableInstant("Somebody asked for it: no renewal reaches past this instant."),
  minHoldUntilMs: NullableInstant(
    "Nobody may claim the key before this instant, even if the lease has ended.",
  ),
  lockDelayMs: Whole("For how long after an expiry nobody may claim the key."),
  handoff: OrNull(
    Closed({
      successor: Text("Who may take it until the deadline."),
      deadlineMs: Instant,
    }),
    "To whom it is being handed; null when to nobody.",
  ),
  reservation: OrNull(
    Closed({ ticket: Text("Of the waiter."), deadlineMs: Instant }),
    "For which waiter it is kept; null when for none.",
  ),
  note: Text("Free text for people; empty when there is none."),
  metadata: Metadata,
});

export const GrantedReplySchema = Described("The command was carried out.", {
  outcome: Type.Literal("applied"),
  lease: LeaseSchema,
  token: Type.Optional(Text("Only in the answer to an acquire. Keep it secret.")),
  validForMs: Whole(
    "How long the lease lasts, counted from when the caller SENT the request (plus waitedMs).",
  ),
  waitedMs: Whole("How long the request waited in the queue here before it was granted."),
  storeTimeMs: Instant,
  resumeFromLedgerRequired: Fact(
    "The last holder did not finish: rebuild from persisted state before acting.",
  ),
  replayed: Fact("This answer was given before; nothing new was granted."),
  leaseId: LeaseId,
  reason: Reason,
  reasonCode: ReasonCode,
  code: Text("LS_OK."),
  traceId: TraceId,
});

export const GrantedAllReplySchema = Closed({
  grants: Type.Array(GrantedReplySchema, {
    description: "One for each name, in the order given, each with its own fence and token.",
  }),
});

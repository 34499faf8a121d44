/**
 * The fields that requests and replies share. A schema fixes types and shapes, and what a reader should
 * know; what a name or a ttl may be is core's to say, so that it is said once and audited.
 */
import {
  MAX_HOLDER_LENGTH,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_LENGTH,
  MAX_METADATA_VALUE_LENGTH,
  MAX_NAME_LENGTH,
  MAX_NOTE_LENGTH,
  MAX_PRIORITY,
  MAX_SLOTS,
  MAX_TOKEN_LENGTH,
  PURPOSES,
} from "solehold/internal";
import { Type } from "typebox";
import { Closed, Count, OneOf, OrNull, Text, Whole } from "./kinds.ts";

export const Tenant = Text("The tenant; without it the caller's only tenant, or `default`.");
export const Name = Text(
  `What is leased: 1 to ${MAX_NAME_LENGTH} printable characters, slashes welcome. Names beginning with $ are reserved.`,
);
/** Which lease. */
export const target = { tenant: Type.Optional(Tenant), name: Name };
/** Which leases. */
export const scope = {
  tenant: Type.Optional(Tenant),
  prefix: Type.Optional(Text("Only names that begin with this.")),
};
export const Holder = Text(`Who holds it: 1 to ${MAX_HOLDER_LENGTH} characters.`);
export const Token = Text(
  `Proof of a grant: up to ${MAX_TOKEN_LENGTH} characters of A-Z a-z 0-9 _ - : . /. Never logged.`,
);
export const TtlMs = Whole("How long the lease lasts without a renewal.");
export const Slots = Type.Integer({
  minimum: 1,
  maximum: MAX_SLOTS,
  description: "How many may hold the name at a time: any free slot of so many is granted. Default 1.",
});
export const Priority = Type.Integer({
  minimum: 0,
  maximum: MAX_PRIORITY,
  description:
    "Among those who wait the higher one is served first; who has waited for 30 s is passed by nobody. Default 0.",
});
export const HoldAtLeastMs = Count(
  "Nobody may claim the key for so long after the grant, even if it is released or expires before.",
);
export const LockDelayMs = Count(
  "Nobody may claim the key for so long after the grant expired. Not after a release.",
);
export const Purpose = OneOf([...PURPOSES], "Why it is held; fixed when granted.");
export const IdempotencyKey = Text(
  "The same key with the same arguments gets the same answer, over restarts too.",
);
export const Note = Text(`Free text for people, up to ${MAX_NOTE_LENGTH} characters.`);
export const Metadata = Type.Record(Type.String(), Type.String(), {
  description: `Data of programs: up to ${MAX_METADATA_ENTRIES} entries, names of 1 to 64 characters of A-Z a-z 0-9 . _ / -, values of up to ${MAX_METADATA_VALUE_LENGTH} characters, ${MAX_METADATA_LENGTH} in all.`,
});
export const Decimal = (description: string) =>
  Type.String({
    pattern: "^[0-9]{1,20}$",
    description: `${description} A decimal string: it may exceed 2^53.`,
  });
export const Fence = Type.String({
  pattern: "^[0-9]{39}$",
  description: "The number to fence with: decimal, zero-padded, so that strings sort as fences do.",
});
export const Instant = Whole("Milliseconds since 1970 on the store's clock.");
export const NullableInstant = (description: string) => OrNull(Type.Integer(), description);
export const LeaseId = Text(
  "The id of one grant: tenant/name@fence. In the audit without @fence where there was none.",
);
/** Of what a denial was decided against. */
export const denial = {
  leaseId: Type.Optional(LeaseId),
  heldBy: Type.Optional(OrNull(Type.String(), "Who stands in the way, if somebody does.")),
  heldUntilMs: Type.Optional(NullableInstant("From when on it may be free, as far as is known now.")),
  expected: Type.Optional({ ...Purpose, description: "Of a mismatch: what the request required." }),
  actual: Type.Optional({ ...Purpose, description: "Of a mismatch: what the lease was granted for." }),
};
export const TraceId = Text("32 hexadecimal digits (W3C trace context).");
export const Reason = Text("Why it was decided so: a stable word.");
export const ReasonCode = Whole("The reason's stable number.");
export const SignerId = Text("Who signed.");
export const Sequence = Whole("Its place in the trail, counted from 1.");
export const NotBefore = Whole("Not valid before this instant, in ms since 1970.");
export const NotAfter = Whole("Not valid after this instant, in ms since 1970.");
export const Approvals = Type.Array(
  Closed({
    signerId: SignerId,
    notBeforeMs: NotBefore,
    notAfterMs: NotAfter,
    signature: Text("Ed25519, base64url."),
  }),
  { maxItems: 512, description: "Signatures of distinct signers." },
);

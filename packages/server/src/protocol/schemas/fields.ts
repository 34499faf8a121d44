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

/** Nothing that is not known: a misspelt field protects nobody. */
export const strict = { additionalProperties: false } as const;

export const Tenant = Type.String({
  description: "The tenant; without it the caller's only tenant, or `default`.",
});
export const Name = Type.String({
  description: `What is leased: 1 to ${MAX_NAME_LENGTH} printable characters, slashes welcome. Names beginning with $ are reserved.`,
});
export const Holder = Type.String({ description: `Who holds it: 1 to ${MAX_HOLDER_LENGTH} characters.` });
export const Token = Type.String({
  description: `Proof of a grant: up to ${MAX_TOKEN_LENGTH} characters of A-Z a-z 0-9 _ - : . /. Never logged.`,
});
export const TtlMs = Type.Integer({ description: "How long the lease lasts without a renewal." });
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
export const HoldAtLeastMs = Type.Integer({
  minimum: 0,
  description:
    "Nobody may claim the key for so long after the grant, even if it is released or expires before.",
});
export const LockDelayMs = Type.Integer({
  minimum: 0,
  description: "Nobody may claim the key for so long after the grant expired. Not after a release.",
});
export const Purpose = Type.Enum([...PURPOSES], { description: "Why it is held; fixed when granted." });
export const IdempotencyKey = Type.String({
  description: "The same key with the same arguments gets the same answer, over restarts too.",
});
export const Note = Type.String({
  description: `Free text for people, up to ${MAX_NOTE_LENGTH} characters.`,
});
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
export const Instant = Type.Integer({ description: "Milliseconds since 1970 on the store's clock." });
export const NullableInstant = (description: string) =>
  Type.Union([Type.Integer(), Type.Null()], { description });
export const LeaseId = Type.String({
  description: "The id of one grant: tenant/name@fence. In the audit without @fence where there was none.",
});
export const TraceId = Type.String({ description: "32 hexadecimal digits (W3C trace context)." });
export const Reason = Type.String({ description: "Why it was decided so: a stable word." });
export const ReasonCode = Type.Integer({ description: "The reason's stable number." });
export const SignerId = Type.String({ description: "Who signed." });
export const Sequence = Type.Integer({ description: "Its place in the trail, counted from 1." });
export const NotBefore = Type.Integer({ description: "Not valid before this instant, in ms since 1970." });
export const NotAfter = Type.Integer({ description: "Not valid after this instant, in ms since 1970." });
export const Approvals = Type.Array(
  Type.Object(
    {
      signerId: SignerId,
      notBeforeMs: NotBefore,
      notAfterMs: NotAfter,
      signature: Type.String({ description: "Ed25519, base64url." }),
    },
    strict,
  ),
  { maxItems: 512, description: "Signatures of distinct signers." },
);

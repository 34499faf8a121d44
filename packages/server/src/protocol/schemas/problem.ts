/** The shape of a problem document, for the OpenAPI file and the tests. */
import { Type } from "typebox";
import { Instant, LeaseId, NullableInstant, Purpose, Reason, ReasonCode, TraceId } from "./fields.ts";

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: "A URN that names the reason." }),
    title: Type.String({ description: "The kind of problem, in a few words." }),
    status: Type.Integer({ description: "The HTTP status, which the stream has no other place for." }),
    detail: Type.String({ description: "What happened and what to do, in one sentence." }),
    reason: Reason,
    reasonCode: ReasonCode,
    code: Type.String({ description: "LS_HELD, LS_EXPIRED, LS_STALE_USE, LS_INVALID, ..." }),
    traceId: TraceId,
    field: Type.Optional(Type.String({ description: "Which part of the request has to be corrected." })),
    name: Type.Optional(
      Type.String({
        description: "Of several names that were asked for together: the one that it is about.",
      }),
    ),
    leaseId: Type.Optional(LeaseId),
    expected: Type.Optional({ ...Purpose, description: "Of a mismatch: what the request required." }),
    actual: Type.Optional({ ...Purpose, description: "Of a mismatch: what the lease was granted for." }),
    heldBy: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: "Who stands in the way, if somebody does." }),
    ),
    heldUntilMs: Type.Optional(NullableInstant("From when on it may be free, as far as is known now.")),
    storeTimeMs: Type.Optional(Instant),
    retryAfterMs: Type.Optional(Type.Integer({ description: "When it is worth trying again, from now." })),
    outcome: Type.Optional(
      Type.Enum(["unknown", "not-applied"], {
        description: "Whether the command may have been carried out.",
      }),
    ),
    storeError: Type.Optional(Type.String({ description: "How the store failed, in one word." })),
    recordVersion: Type.Optional(
      Type.String({ description: "The store's version of a record that cannot be read." }),
    ),
    recordDetail: Type.Optional(Type.String({ description: "What is wrong with that record." })),
    quorum: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "How the approvals were judged: tier, required, received, passed, failures.",
      }),
    ),
    coordinatorCode: Type.Optional(Type.String({ description: "Why no coordinator could be chosen." })),
  },
  { additionalProperties: false, description: "RFC 9457." },
);

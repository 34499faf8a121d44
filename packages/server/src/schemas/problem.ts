/** The shape of a problem document, for the OpenAPI file and the tests. */
import { Type } from "typebox";

const optionalInstant = Type.Optional(Type.Union([Type.Integer(), Type.Null()]));

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: "A URN that names the reason." }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: "What happened and what to do, in one sentence." }),
    reason: Type.String(),
    reasonCode: Type.Integer({ description: "The reason's stable number." }),
    code: Type.String({ description: "LS_HELD, LS_EXPIRED, LS_STALE_USE, LS_INVALID, ..." }),
    traceId: Type.String(),
    field: Type.Optional(Type.String({ description: "Which part of the request has to be mended." })),
    heldBy: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    heldUntilMs: optionalInstant,
    storeTimeMs: Type.Optional(Type.Integer()),
    retryAfterMs: Type.Optional(Type.Integer()),
    outcome: Type.Optional(
      Type.Enum(["unknown", "not-applied"], {
        description: "Whether the command may have been carried out.",
      }),
    ),
    storeError: Type.Optional(Type.String()),
    coordinatorCode: Type.Optional(Type.String()),
  },
  { additionalProperties: false, description: "RFC 9457." },
);

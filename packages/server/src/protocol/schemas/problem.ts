/** The shape of a problem document, for the OpenAPI file and the tests. */
import { Type } from "typebox";
import { denial, Instant, Reason, ReasonCode, TraceId } from "./fields.ts";
import { Described, OneOf, Text, Whole } from "./kinds.ts";

export const ProblemSchema = Described("RFC 9457.", {
  type: Text("A URN that names the reason."),
  title: Text("The kind of problem, in a few words."),
  status: Whole("The HTTP status, which the stream has no other place for."),
  detail: Text("What happened and what to do, in one sentence."),
  reason: Reason,
  reasonCode: ReasonCode,
  code: Text("LS_HELD, LS_EXPIRED, LS_STALE_USE, LS_INVALID, ..."),
  traceId: TraceId,
  field: Type.Optional(Text("Which part of the request has to be corrected.")),
  name: Type.Optional(Text("Of several names that were asked for together: the one that it is about.")),
  ...denial,
  storeTimeMs: Type.Optional(Instant),
  retryAfterMs: Type.Optional(Whole("When it is worth trying again, from now.")),
  outcome: Type.Optional(OneOf(["unknown", "not-applied"], "Whether the command may have been carried out.")),
  storeError: Type.Optional(Text("How the store failed, in one word.")),
  recordVersion: Type.Optional(Text("The store's version of a record that cannot be read.")),
  recordDetail: Type.Optional(Text("What is wrong with that record.")),
  quorum: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: "How the approvals were judged: tier, required, received, passed, failures.",
    }),
  ),
  coordinatorCode: Type.Optional(Text("Why no coordinator could be chosen.")),
});

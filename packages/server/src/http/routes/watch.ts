/** GET /v1/watch: changes as server-sent events. The response has no end, so the app serves it apart from other routes. */
import { Type } from "typebox";
import { type Principal, readableScope } from "../../access/principal.ts";
import { Tenant } from "../../protocol/schemas/fields.ts";
import { checkQueryOf } from "../../protocol/validation.ts";
import type { WatchRequest } from "../../watch/sse.ts";
import type { RouteSpec } from "../route.ts";

const WatchQuery = Type.Object(
  {
    tenant: Type.Optional(Tenant),
    prefix: Type.Optional(Type.String({ description: "Only names that begin with this." })),
    after: Type.Optional(
      Type.String({ description: "The id of the last event seen; the header Last-Event-ID does the same." }),
    ),
  },
  { additionalProperties: false },
);

export const WATCH_SPEC: Omit<RouteSpec, "handle"> = {
  method: "GET",
  path: "/v1/watch",
  operationId: "watchLeases",
  tag: "leases",
  summary: "Changes of leases, as they happen",
  description:
    "Server-sent events `changed`, `expired`, `deleted` with the lease as JSON data, and `reset`: some may be missing, list again. Events are hints; they may be doubled.",
  query: WatchQuery,
  replies: {
    200: { description: "An endless stream.", contentType: "text/event-stream", schema: Type.String() },
  },
  examples: [],
};

const checkQuery = checkQueryOf(WatchQuery);

/** What a request asks to watch, allowed. `lastEventId` is the header by which a browser resumes. Throws a ProblemError. */
export function watchRequest(query: unknown, principal: Principal, lastEventId: unknown): WatchRequest {
  const input = checkQuery(query);
  const resumed = typeof lastEventId === "string" ? lastEventId : null;
  return { scope: readableScope(principal, input), after: input.after ?? resumed };
}

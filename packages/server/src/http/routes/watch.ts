/** GET /v1/watch: changes of leases as server-sent events. */
import { Type } from "typebox";
import { readableScope } from "../../access/principal.ts";
import { Tenant } from "../../protocol/schemas/fields.ts";
import { checkQueryOf } from "../../protocol/validation.ts";
import { type LeaseEventsOptions, leaseEvents } from "../../watch/lease-events.ts";
import type { EventRoute, RouteSpec } from "../route.ts";

const WatchQuery = Type.Object(
  {
    tenant: Type.Optional(Tenant),
    prefix: Type.Optional(Type.String({ description: "Only names that begin with this." })),
    after: Type.Optional(
      Type.String({ description: "The id of the last event seen; the header Last-Event-ID does the same." }),
    ),
    queues: Type.Optional(
      Type.Boolean({
        description:
          "Also events `queue` with `name` and `waiting`: how many wait for a lease on this server, first all, then changes.",
      }),
    ),
  },
  { additionalProperties: false },
);

const WATCH_SPEC: Omit<RouteSpec, "handle"> = {
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

export function watchRoute(options: LeaseEventsOptions): EventRoute {
  return {
    spec: WATCH_SPEC,
    open: (query, principal, lastEventId) => {
      const input = checkQuery(query);
      const after = input.after ?? lastEventId;
      const scope = readableScope(principal, input);
      const queues = input.queues ?? false;
      return { tenant: scope.tenant, source: leaseEvents(options, { scope, after, queues }) };
    },
  };
}

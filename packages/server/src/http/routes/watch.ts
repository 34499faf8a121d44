/** GET /v1/watch: changes of leases as server-sent events. */
import { Type } from "typebox";
import { readableScope } from "../../access/principal.ts";
import { scope } from "../../protocol/schemas/fields.ts";
import { Closed, Fact, Text } from "../../protocol/schemas/kinds.ts";
import { type LeaseEventsOptions, leaseEvents } from "../../watch/lease-events.ts";
import { defineEvents, type EventRoute } from "../route.ts";

const WatchQuery = Closed({
  ...scope,
  after: Type.Optional(Text("The id of the last event seen; the header Last-Event-ID does the same.")),
  queues: Type.Optional(
    Fact(
      "Also events `queue` with `name` and `waiting`: how many wait for a lease on this server, first all, then changes.",
    ),
  ),
});

export function watchRoute(options: LeaseEventsOptions): EventRoute {
  const spec = {
    path: "/v1/watch",
    operationId: "watchLeases",
    tag: "leases",
    summary: "Changes of leases, as they happen",
    description:
      "Server-sent events `changed`, `expired`, `deleted` with the lease as JSON data, and `reset`: some may be missing, list again. Events are hints; they may be doubled.",
    query: WatchQuery,
  };
  return defineEvents(spec, (query, principal, lastEventId) => {
    const scope = readableScope(principal, query);
    const request = { scope, after: query.after ?? lastEventId, queues: query.queues ?? false };
    return { tenant: scope.tenant, source: leaseEvents(options, request) };
  });
}

/** GET /v1/queue: who waits for a lease on this server, in which order, and for how long about. */
import type { WaitQueue } from "solehold/internal";
import { Type } from "typebox";
import { leaseKeyFor } from "../../access/principal.ts";
import { NullableInstant, target } from "../../protocol/schemas/fields.ts";
import { Closed, OrNull, Text, Whole } from "../../protocol/schemas/kinds.ts";
import { defineRoute, type Route } from "../route.ts";

const QueueReply = Closed({
  waiting: Whole("How many."),
  heldBy: OrNull(Type.String(), "Who has it, if that is known here."),
  heldUntilMs: NullableInstant("Until when, if nobody renews it."),
  waiters: Type.Array(
    Closed({
      position: Whole("0 is next."),
      holder: Text("For whom."),
      waitedMs: Whole("For how long already."),
      expectedWaitMs: Whole("If nobody renews, and everybody ahead keeps the lease for its whole ttl."),
    }),
    { description: "The first hundred." },
  ),
});

export function queueRoute(queue: WaitQueue): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/queue",
    operationId: "getQueue",
    tag: "leases",
    summary: "Who waits for a lease on this server",
    query: Closed(target),
    replies: { 200: { description: "The queue, first come first served.", schema: QueueReply } },
    examples: [{ summary: "Look at the queue", query: { name: "reports/nightly" }, status: 200 }],
    handle: async ({ query }, { principal }) => queue.view(leaseKeyFor(principal, "read", query)),
  });
}

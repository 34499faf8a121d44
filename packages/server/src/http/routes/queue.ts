/** GET /v1/queue: who waits for a lease on this server, in which order, and for how long about. */
import type { WaitQueue } from "solehold/internal";
import { Type } from "typebox";
import { leaseKeyFor } from "../../access/principal.ts";
import { Name, NullableInstant, strict, Tenant } from "../../protocol/schemas/fields.ts";
import { defineRoute, type Route } from "../route.ts";

const QueueReply = Type.Object(
  {
    waiting: Type.Integer({ description: "How many." }),
    heldBy: Type.Union([Type.String(), Type.Null()], { description: "Who has it, if that is known here." }),
    heldUntilMs: NullableInstant("Until when, if nobody renews it."),
    waiters: Type.Array(
      Type.Object(
        {
          position: Type.Integer({ description: "0 is next." }),
          holder: Type.String({ description: "For whom." }),
          waitedMs: Type.Integer({ description: "For how long already." }),
          expectedWaitMs: Type.Integer({
            description: "If nobody renews, and everybody ahead keeps the lease for its whole ttl.",
          }),
        },
        strict,
      ),
      { description: "The first hundred." },
    ),
  },
  strict,
);

export function queueRoute(queue: WaitQueue): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/queue",
    operationId: "getQueue",
    tag: "leases",
    summary: "Who waits for a lease on this server",
    query: Type.Object({ tenant: Type.Optional(Tenant), name: Name }, strict),
    replies: { 200: { description: "The queue, first come first served.", schema: QueueReply } },
    examples: [{ summary: "Look at the queue", query: { name: "reports/nightly" }, status: 200 }],
    handle: async ({ query }, { principal }) => ({
      status: 200,
      body: queue.view(leaseKeyFor(principal, "read", query)),
    }),
  });
}

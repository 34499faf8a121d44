/** GET /v1/replicas: the servers over this store that are alive, for clients that look for a key's home. */
import { homeOf, type LeaseService } from "solehold/internal";
import { Type } from "typebox";
import { leaseKeyFor } from "../../access/principal.ts";
import { Name, Tenant } from "../../protocol/schemas/fields.ts";
import { Closed, OrNull, Text, Whole } from "../../protocol/schemas/kinds.ts";
import type { Membership } from "../../replicas/membership.ts";
import { defineRoute, type Route } from "../route.ts";
import { assertListable } from "./leases.ts";

const ReplicasReply = Closed({
  replicas: Type.Array(
    Closed({
      nodeId: Text("Its name, which decides on the keys at home there."),
      url: Text("Where clients reach it."),
      weight: Whole("Its share of the keys, against the others' weights."),
    }),
    { description: "Those that are alive, by name." },
  ),
  self: OrNull(Type.String(), "Which of them answers; null if none."),
  home: Type.Optional(
    OrNull(Type.String(), "Of the key that was asked about: where its requests go. Null without replicas."),
  ),
});

export function replicasRoute(membership: Membership, service: LeaseService): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/replicas",
    operationId: "listReplicas",
    tag: "operations",
    summary: "The servers over this store that are alive",
    description:
      "A client sends a key's requests to its home: the first by rendezvous-v1 of the key among these. Any other replica answers as correctly.",
    query: Closed({ tenant: Type.Optional(Tenant), name: Type.Optional(Name) }),
    replies: { 200: { description: "By name.", schema: ReplicasReply } },
    examples: [
      { summary: "Who serves", status: 200 },
      { summary: "Where a key is at home", query: { name: "reports/nightly" }, status: 200 },
    ],
    handle: async ({ query: { tenant, name } }, { principal }) => {
      // A client that gets no answer here goes on with the addresses that it was given.
      assertListable(service);
      const replicas = await membership.members();
      const found = { replicas, self: membership.selfAmong(replicas) };
      if (name === undefined) return found;
      const key = leaseKeyFor(principal, "read", { name, ...(tenant === undefined ? {} : { tenant }) });
      return { ...found, home: homeOf(key, replicas)?.nodeId ?? null };
    },
  });
}

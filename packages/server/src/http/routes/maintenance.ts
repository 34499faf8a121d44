/** POST /v1/maintenance/collect and /repair: what an operator does to the records themselves. */

import type { LeaseKey } from "solehold";
import {
  CorruptRecordError,
  collectionObstacle,
  type LeaseService,
  repairGeneration,
} from "solehold/internal";
import { Type } from "typebox";
import { contextOf } from "../../access/call.ts";
import { oneAtATime } from "../../access/one-at-a-time.ts";
import { assertAllowed, leaseKeyFor, tenantOf } from "../../access/principal.ts";
import { ProblemError, refusal, storeCannot } from "../../protocol/problem.ts";
import { Decimal, Tenant, target } from "../../protocol/schemas/fields.ts";
import { Closed, Fact, Text, Whole } from "../../protocol/schemas/kinds.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { defineRoute, type Route } from "../route.ts";

const CollectReply = Closed({
  tenant: Text("Whose records."),
  scanned: Whole("How many were looked at."),
  deleted: Whole("How many had ended long enough ago, and are gone."),
});

const RepairReply = Closed({
  repaired: Fact("False when the record is not damaged (any more)."),
  generation: Decimal("The next grant is above this generation."),
});

export function maintenanceRoutes(service: LeaseService, metrics: Metrics): readonly Route[] {
  const alone = oneAtATime("a collection");
  const collect = defineRoute({
    method: "POST",
    path: "/v1/maintenance/collect",
    operationId: "collect",
    tag: "operations",
    summary: "Delete the records of leases that ended more than a day ago",
    description:
      "The server does this by itself, unless it was started with --collect-every 0. Fences keep growing. Needs an API key for all names of the tenant; one at a time.",
    body: Closed({ tenant: Type.Optional(Tenant) }),
    replies: { 200: { description: "One pass over the tenant.", schema: CollectReply } },
    examples: [{ summary: "Collect now", body: {}, status: 200 }],
    async handle({ body }, { principal }) {
      const tenant = tenantOf(principal, body.tenant);
      assertAllowed(principal, "collect", tenant, "");
      const obstacle = collectionObstacle(service.executor.store);
      if (obstacle !== null)
        throw new ProblemError(storeCannot(`ended records are kept for ever: ${obstacle}`));
      const { scanned, deleted } = await alone(() => service.executor.collect(tenant));
      metrics.collected(deleted);
      return { tenant, scanned, deleted };
    },
  });
  const repair = defineRoute({
    method: "POST",
    path: "/v1/maintenance/repair",
    operationId: "repair",
    tag: "operations",
    summary: "Replace a damaged record, so that its lease can be acquired again",
    description:
      "What the record said is lost: make sure first that its last holder has stopped. A record that can be read is left alone.",
    body: Closed({
      ...target,
      generation: Type.Optional(
        Decimal("At least the highest that was ever granted there; without it, by the store's time."),
      ),
    }),
    replies: { 200: { description: "Whether there was something to repair.", schema: RepairReply } },
    examples: [{ summary: "Not damaged", body: { name: "reports/nightly" }, status: 200 }],
    async handle({ body }, call) {
      const key = leaseKeyFor(call.principal, "repair", body);
      // The look also brings the store's time.
      const damaged = await isDamaged(service, key);
      const generation = generationFor(service, body.generation);
      const repaired = damaged && (await service.repair(key, generation, contextOf(call)));
      return { repaired, generation: String(generation) };
    },
  });
  return [collect, repair];
}

async function isDamaged(service: LeaseService, key: LeaseKey): Promise<boolean> {
  try {
    await service.read(key);
    return false;
  } catch (error) {
    if (error instanceof CorruptRecordError) return true;
    throw error;
  }
}

function generationFor(service: LeaseService, given: string | undefined): bigint {
  const generation = given === undefined ? repairGeneration(service.executor) : BigInt(given);
  if (generation !== null && generation < 2n ** 64n) return generation;
  throw new ProblemError(
    refusal(
      "generation",
      generation === null
        ? "is missing: this store has no clock; name one no lower than any that was granted there"
        : "must fit into 64 bits",
    ),
  );
}

/** POST /v1/maintenance/doctor: whether leases may be trusted to the store behind this server, asked with real leases. */
import { type Env, examineLeases, type LeaseService, ReportBuilder } from "solehold/internal";
import { Type } from "typebox";
import { oneAtATime } from "../../access/one-at-a-time.ts";
import { assertAllowed, tenantOf } from "../../access/principal.ts";
import { Tenant } from "../../protocol/schemas/fields.ts";
import { Closed, Fact, OneOf, Text } from "../../protocol/schemas/kinds.ts";
import { defineRoute, type Route } from "../route.ts";

export const CheckSchema = Closed({
  id: Text("What was looked at."),
  status: OneOf(["ok", "warn", "fail", "skip"], "Whether there is something to do."),
  detail: Text("What is so, and what to do."),
});

const DoctorReply = Closed({
  ok: Fact("Whether no check has failed."),
  checks: Type.Array(CheckSchema, { description: "In the order in which they ran." }),
});

export function doctorRoute(service: LeaseService, env: Env): Route {
  const alone = oneAtATime("an examination");
  return defineRoute({
    method: "POST",
    path: "/v1/maintenance/doctor",
    operationId: "examine",
    tag: "operations",
    summary: "Examine the store behind this server, as `solehold doctor` does",
    description:
      "Takes a few leases on keys of its own (`solehold-doctor/...`), releases them and deletes their records; takes a few seconds. Needs an API key for 'repair' on all names of the tenant; one at a time.",
    body: Closed({ tenant: Type.Optional(Tenant) }),
    replies: { 200: { description: "What was found.", schema: DoctorReply } },
    examples: [{ summary: "Examine it", body: {}, status: 200 }],
    async handle({ body }, { principal }) {
      const tenant = tenantOf(principal, body.tenant);
      assertAllowed(principal, "repair", tenant, "");
      const builder = new ReportBuilder();
      await alone(() => examineLeases(builder, service.executor, tenant, env));
      return builder.report();
    },
  });
}

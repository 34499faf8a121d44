/** POST /v1/maintenance/doctor: whether leases may be trusted to the store behind this server, asked with real leases. */
import { type Env, examineLeases, type LeaseService, ReportBuilder } from "solehold/internal";
import { Type } from "typebox";
import { oneAtATime } from "../../access/one-at-a-time.ts";
import { assertAllowed, tenantOf } from "../../access/principal.ts";
import { strict, Tenant } from "../../protocol/schemas/fields.ts";
import { defineRoute, type Route } from "../route.ts";

export const CheckSchema = Type.Object(
  {
    id: Type.String({ description: "What was looked at." }),
    status: Type.Enum(["ok", "warn", "fail", "skip"], { description: "Whether there is something to do." }),
    detail: Type.String({ description: "What is so, and what to do." }),
  },
  strict,
);

const DoctorReply = Type.Object(
  {
    ok: Type.Boolean({ description: "Whether no check has failed." }),
    checks: Type.Array(CheckSchema, { description: "In the order in which they ran." }),
  },
  strict,
);

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
    body: Type.Object({ tenant: Type.Optional(Tenant) }, strict),
    replies: { 200: { description: "What was found.", schema: DoctorReply } },
    examples: [{ summary: "Examine it", body: {}, status: 200 }],
    async handle({ body }, { principal }) {
      const tenant = tenantOf(principal, body.tenant);
      assertAllowed(principal, "repair", tenant, "");
      const builder = new ReportBuilder();
      await alone(() => examineLeases(builder, service.executor, tenant, env));
      return { status: 200, body: builder.report() };
    },
  });
}

/** /healthz: the process answers. /readyz: it can do its work. */
import { Type } from "typebox";
import { defineRoute, type Route } from "../route.ts";

const Healthy = Type.Object({ status: Type.Literal("ok") });

export function healthRoutes(): readonly Route[] {
  const health = defineRoute({
    method: "GET",
    path: "/healthz",
    operationId: "health",
    tag: "operations",
    summary: "The process answers",
    replies: { 200: { description: "It does.", schema: Healthy } },
    examples: [{ summary: "Ask", status: 200 }],
    handle: async () => ({ status: 200, body: { status: "ok" } }),
  });
  return [health];
}

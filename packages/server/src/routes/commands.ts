/** POST /v1/leases/{command}: one route per command on a lease. */
import type { LeaseOp } from "solehold";
import { COMMAND_SCHEMAS, type Commands } from "../commands.ts";
import type { Route, RouteExample } from "../route.ts";
import { GrantedReplySchema } from "../schemas/leases.ts";

const SUMMARIES: { readonly [op in LeaseOp]: string } = {
  acquire: "Take a lease, at once or by waiting in line",
  renew: "Prolong a lease, or thousands in one call",
  release: "Give a lease back",
  use: "Ask whether a lease may be used now, for a purpose",
  resume: "Say that work was rebuilt from persisted state after a takeover",
  handoff: "Give a lease to one successor",
  revoke: "End a lease now, as an operator",
  break: "Ask for a lease: no renewal reaches past the period",
};

const example = { tenant: "default", name: "reports/nightly" };
const owner = { ...example, holder: "worker-1", token: "example-token-1" };

/** In the order in which they work one after another. */
const EXAMPLES: { readonly [op in LeaseOp]: RouteExample } = {
  acquire: { summary: "Take it for 30 s", body: { ...owner, ttlMs: 30_000 }, status: 200 },
  use: { summary: "Use it", body: { ...owner, purpose: "Operation" }, status: 200 },
  renew: { summary: "Prolong it", body: { ...owner, ttlMs: 30_000 }, status: 200 },
  resume: { summary: "Go on after a takeover", body: owner, status: 200 },
  break: { summary: "Ask for it within 10 s", body: { ...example, periodMs: 10_000 }, status: 200 },
  handoff: {
    summary: "Hand it to worker-2",
    body: { ...owner, successor: "worker-2", withinMs: 5_000 },
    status: 200,
  },
  release: { summary: "Give it back, again", body: owner, status: 200 },
  revoke: { summary: "End it", body: example, status: 200 },
};

const PATHS = Object.keys(EXAMPLES) as readonly LeaseOp[];

/** Commands check their own bodies, because the stream brings the same ones. */
export function commandRoutes(commands: Commands): readonly Route[] {
  return PATHS.map((op) => ({
    spec: {
      method: "POST",
      path: `/v1/leases/${op}`,
      operationId: op,
      tag: "leases",
      summary: SUMMARIES[op],
      body: COMMAND_SCHEMAS[op],
      replies: { 200: { description: "Granted.", schema: GrantedReplySchema } },
      examples: [EXAMPLES[op]],
    },
    run: (body, _query, call) => commands.execute(op, body, call),
  }));
}

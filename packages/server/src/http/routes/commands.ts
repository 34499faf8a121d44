/** POST /v1/leases/{command}: one route per command on a lease; renew also takes thousands at once. And acquire/all. */
import type { LeaseOp } from "solehold/internal";
import { type TSchema, Type } from "typebox";
import type { Call } from "../../access/call.ts";
import type { RateLimiter } from "../../access/rate-limit.ts";
import { COMMAND_SCHEMAS, type CommandHandler } from "../../commands/command-handler.ts";
import { ProblemError, refusal } from "../../protocol/problem.ts";
import { strict } from "../../protocol/schemas/kinds.ts";
import {
  AcquireAllBody,
  GrantedAllReplySchema,
  GrantedReplySchema,
  RenewBody,
} from "../../protocol/schemas/leases.ts";
import { ProblemSchema } from "../../protocol/schemas/problem.ts";
import { checkOf } from "../../protocol/validation.ts";
import type { Answer, Route, RouteExample } from "../route.ts";

const SUMMARIES: { readonly [op in LeaseOp]: string } = {
  acquire: "Take a lease, at once or by waiting in a queue",
  renew: "Prolong a lease, or thousands in one call",
  release: "Release a lease",
  use: "Ask whether a lease may be used now, for a purpose",
  resume: "Say that work was rebuilt from persisted state after a takeover",
  handoff: "Give a lease to one successor",
  revoke: "End a lease now, as an operator",
  break: "Ask for a lease: no renewal reaches past the period",
};

const target = { tenant: "default", name: "reports/nightly" };
const owner = { ...target, holder: "worker-1", token: "example-token-1" };

/** In an order in which they work one after another. */
const EXAMPLES: { readonly [op in LeaseOp]: readonly RouteExample[] } = {
  acquire: [{ summary: "Take it for 30 s", body: { ...owner, ttlMs: 30_000 }, status: 200 }],
  use: [{ summary: "Use it", body: { ...owner, purpose: "Operation" }, status: 200 }],
  renew: [
    { summary: "Prolong it", body: { ...owner, ttlMs: 30_000 }, status: 200 },
    { summary: "Prolong several", body: { leases: [{ ...owner, ttlMs: 30_000 }] }, status: 200 },
  ],
  resume: [{ summary: "Go on after a takeover", body: owner, status: 200 }],
  break: [{ summary: "Ask for it within 10 s", body: { ...target, periodMs: 10_000 }, status: 200 }],
  handoff: [
    { summary: "Hand it on", body: { ...owner, successor: "worker-2", withinMs: 5_000 }, status: 200 },
  ],
  release: [{ summary: "Release it; again is fine", body: owner, status: 200 }],
  revoke: [
    { summary: "End it", body: target, status: 200 },
    { summary: "A second time is denied", body: target, status: 409 },
  ],
};

const OPS = Object.keys(EXAMPLES) as readonly LeaseOp[];

const RenewManyBody = Type.Object(
  { leases: Type.Array(RenewBody, { minItems: 1, description: "Each as for a single renewal." }) },
  strict,
);
const RenewManyReply = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          status: Type.Integer({ description: "As a request of its own would have been answered." }),
          body: Type.Union([GrantedReplySchema, ProblemSchema], { description: "Granted, or the problem." }),
        },
        strict,
      ),
      { description: "One per lease, in the order given." },
    ),
  },
  strict,
);

/** The items are checked one by one, so that one bad item does not spoil the others. */
const checkMany = checkOf(
  Type.Object({ leases: Type.Array(Type.Unknown(), { minItems: 1 }) }, strict),
  "body",
);

const checkAcquireAll = checkOf(AcquireAllBody, "body");
const NO_WAIT = "is for one name: to wait for several, acquire one after the other, in the order of names";

export interface CommandRoutesOptions {
  readonly commands: CommandHandler;
  readonly limiter: RateLimiter;
  readonly batchLimit: number;
}

/** Commands check their own bodies, because the stream brings the same ones. */
export function commandRoutes(options: CommandRoutesOptions): readonly Route[] {
  const { commands } = options;
  return OPS.map((op) => ({
    spec: {
      method: "POST",
      path: `/v1/leases/${op}`,
      operationId: op,
      tag: "leases",
      summary: SUMMARIES[op],
      body: bodySchema(op),
      ...(op === "renew" ? { bodyLimitBytes: Number.POSITIVE_INFINITY } : {}),
      replies: { 200: { description: "Granted.", schema: replySchema(op) } },
      examples: EXAMPLES[op],
    },
    run: (body, _query, call) =>
      op === "renew" && has(body, "leases")
        ? renewMany(options, body, call)
        : commands.execute(op, body, call),
  }));
}

/** One request with one answer, and as many commands as it has names. */
export function acquireAllRoute({ commands, limiter }: CommandRoutesOptions): Route {
  return {
    spec: {
      method: "POST",
      path: "/v1/leases/acquire/all",
      operationId: "acquireAll",
      tag: "leases",
      summary: "Take several leases at once, or none of them",
      body: AcquireAllBody,
      replies: { 200: { description: "All of them are granted.", schema: GrantedAllReplySchema } },
      examples: [
        {
          summary: "Take two for 30 s",
          body: { names: ["account/7", "account/3"], holder: "worker-1", ttlMs: 30_000 },
          status: 200,
        },
      ],
    },
    run: async (body, _query, call) => {
      if (has(body, "waitMs")) throw new ProblemError(refusal("waitMs", NO_WAIT));
      const checked = checkAcquireAll(body);
      // One was taken when the request arrived.
      if (checked.names.length > 1) limiter.take(call.principal.id, checked.names.length - 1);
      return await commands.acquireAll(checked, call);
    },
  };
}

function bodySchema(op: LeaseOp): TSchema {
  return op === "renew" ? Type.Union([RenewBody, RenewManyBody]) : COMMAND_SCHEMAS[op];
}

function replySchema(op: LeaseOp): TSchema {
  return op === "renew" ? Type.Union([GrantedReplySchema, RenewManyReply]) : GrantedReplySchema;
}

function has(body: unknown, field: string): boolean {
  return typeof body === "object" && body !== null && field in body;
}

async function renewMany(options: CommandRoutesOptions, body: unknown, call: Call): Promise<Answer> {
  const { commands, limiter, batchLimit } = options;
  const { leases } = checkMany(body);
  if (leases.length > batchLimit) {
    const message = `must have at most ${batchLimit} entries, got ${leases.length}: send several requests`;
    throw new ProblemError(refusal("leases", message));
  }
  // One was taken when the request arrived.
  if (leases.length > 1) limiter.take(call.principal.id, leases.length - 1);
  const results = await commands.executeAll("renew", leases, call);
  return {
    status: 200,
    body: { results: results.map(({ status, body: reply }) => ({ status, body: reply })) },
  };
}

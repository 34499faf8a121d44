/**
 * The fence guard for Fastify: `app.put("/…", { preHandler: fenceGuard({ keyOf }) }, handler)`. The next request for the
 * same key begins when the handler has sent its reply. A handler must not write after that.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { FENCE_HEADER, fenceAdmission, type HttpGuardOptions } from "../guards/http.ts";
import { leaveWithEnd } from "./leave-with-end.ts";

export type { HttpGuardOptions } from "../guards/http.ts";

/** The parts of Fastify's request and reply that are used. */
export interface FastifyRequestLike {
  readonly headers: IncomingMessage["headers"];
}
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  code(status: number): { send(body: unknown): unknown };
}

export function fenceGuard<Request extends FastifyRequestLike>(
  options: HttpGuardOptions<Request>,
): (request: Request, reply: FastifyReplyLike) => Promise<unknown> {
  const admit = fenceAdmission(options);
  return async (request, reply) => {
    const admission = await admit(request, request.headers[FENCE_HEADER]);
    if (admission.refusal !== null) return reply.code(admission.refusal.status).send(admission.refusal.body);
    leaveWithEnd(reply.raw, admission.leave);
    return undefined;
  };
}

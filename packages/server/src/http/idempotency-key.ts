/**
 * The header `Idempotency-Key`, as many HTTP clients know it: the same as the field of that name in the body of a command.
 * Where a route takes no such field, or the two differ, the request is refused: a key that is ignored protects nobody.
 */
import type { FastifyRequest } from "fastify";
import { ProblemError, refusal } from "../protocol/problem.ts";

/** The body of a request, with what the header says. Throws a ProblemError. */
export function bodyOf({ body, headers, method }: FastifyRequest): unknown {
  const given = headers["idempotency-key"];
  if (given === undefined || method !== "POST") return body;
  if (typeof body !== "object" || body === null) return body;
  // The draft of the standard has it in quotes; most clients do not.
  const idempotencyKey = String(given).replace(/^"(.*)"$/, "$1");
  const own = (body as { readonly idempotencyKey?: unknown }).idempotencyKey;
  if (own !== undefined && own !== idempotencyKey)
    throw new ProblemError(refusal("idempotencyKey", "differs from the header Idempotency-Key: send one"));
  return { ...body, idempotencyKey };
}

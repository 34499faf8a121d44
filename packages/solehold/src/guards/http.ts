/**
 * The guard of an HTTP service: requests carry the fence of their lease in the header `Solehold-Fence`, and
 * one that is older than the newest seen is answered 412. Requests for one resource run one after the
 * other, from the check until the handler ends its response, so the check and the handler's write are one
 * step. A handler must end its response, also when its client is gone, and must not write after that.
 *
 * It guards what one process writes. With several processes behind it, pass the fence on to the guard of
 * the database.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { formatFence, type LeaseKey, parseFence } from "../core/index.ts";
import { FenceGate } from "./fence-gate.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

export const FENCE_HEADER = "solehold-fence";

export interface HttpGuardOptions<Request> {
  /** What the request writes to: the key of the lease that protects it. */
  readonly keyOf: (request: Request) => LeaseKey;
  readonly gate?: FenceGate;
}

/** What a client sends along: `fetch(url, { headers: fenceHeaders(lease) })`. */
export function fenceHeaders(by: Pick<Fenced, "fence">): Record<string, string> {
  return { [FENCE_HEADER]: formatFence(by.fence) };
}

/** For express, connect and plain node:http: `app.put("/…", fenceGuard({ keyOf }), handler)`. */
export function fenceGuard<Request extends IncomingMessage>(
  options: HttpGuardOptions<Request>,
): (request: Request, response: ServerResponse, next: (error?: unknown) => void) => void {
  const { keyOf, gate = new FenceGate() } = options;
  return (request, response, next) => {
    admit(gate, request.headers[FENCE_HEADER], () => keyOf(request), response).then((refusal) => {
      if (refusal === null) return next();
      response.writeHead(refusal.status, { "content-type": "application/json" });
      response.end(JSON.stringify(refusal.body));
    }, next);
  };
}

/** The parts of fastify's request and reply that are used. */
export interface FastifyRequestLike {
  readonly headers: IncomingMessage["headers"];
}
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  code(status: number): { send(body: unknown): unknown };
}

/** For fastify: `app.put("/…", { preHandler: fastifyFenceGuard({ keyOf }) }, handler)`. */
export function fastifyFenceGuard<Request extends FastifyRequestLike>(
  options: HttpGuardOptions<Request>,
): (request: Request, reply: FastifyReplyLike) => Promise<unknown> {
  const { keyOf, gate = new FenceGate() } = options;
  return async (request, reply) => {
    const refusal = await admit(gate, request.headers[FENCE_HEADER], () => keyOf(request), reply.raw);
    return refusal === null ? undefined : reply.code(refusal.status).send(refusal.body);
  };
}

interface Refusal {
  readonly status: number;
  readonly body: { readonly code: string; readonly message: string; readonly newest?: string };
}

/** Null when the request may go on; the turn then ends with its response. */
async function admit(
  gate: FenceGate,
  header: string | string[] | undefined,
  keyOf: () => LeaseKey,
  response: ServerResponse,
): Promise<Refusal | null> {
  if (header === undefined)
    return refusal(428, "FENCE_MISSING", `send the fence of your lease in the header ${FENCE_HEADER}`);
  const fence = typeof header === "string" ? parseFence(header) : null;
  if (fence === null)
    return refusal(
      400,
      "FENCE_INVALID",
      `the header ${FENCE_HEADER} must be a decimal number, got '${header}'`,
    );
  try {
    leaveWithEnd(response, await gate.enter({ key: keyOf(), fence }));
    return null;
  } catch (error) {
    if (!(error instanceof StaleFenceError)) throw error;
    const { status, body } = refusal(412, "STALE_FENCE", error.message);
    return { status, body: { ...body, newest: formatFence(error.newestFence) } };
  }
}

/**
 * The turn ends when the handler ends the response, and not when the client goes away: a handler whose
 * client is gone may still be about to write.
 */
function leaveWithEnd(response: ServerResponse, leave: () => void): void {
  const end = response.end;
  Object.assign(response, {
    end: (...parts: unknown[]): unknown => {
      leave();
      return Reflect.apply(end, response, parts);
    },
  });
}

function refusal(status: number, code: string, message: string): Refusal {
  return { status, body: { code, message } };
}

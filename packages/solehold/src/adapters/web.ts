/**
 * Routes of the web-standard shape `(Request) => Response`: Next.js route handlers, Hono, Deno, Bun, service frameworks
 * that speak it. The turn of a fence, and the lease, end when the handler has returned its response; a body that is
 * streamed after that is not under them.
 */
import {
  type LeaseError,
  LeaseHeldError,
  LeaseLostError,
  type Leases,
  LeaseUnavailableError,
} from "../client/index.ts";
import { REASONS } from "../core/index.ts";
import { FENCE_HEADER, fenceAdmission, type HttpGuardOptions } from "../guards/http.ts";
import { checkHeld, type Held, type HeldOptions, runHeld } from "./held.ts";

export type { HttpGuardOptions } from "../guards/http.ts";
export type { Held, HeldOptions, NameOf } from "./held.ts";

type Answer = Response | Promise<Response>;

/**
 * The side that is written to: `export const PUT = fencedRoute({ keyOf }, async (request) => …)`. Answers 428 without a
 * fence, 400 for a malformed one, 412 for an older one.
 */
export function fencedRoute<Rest extends unknown[]>(
  options: HttpGuardOptions<Request>,
  handler: (request: Request, ...rest: Rest) => Answer,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const admit = fenceAdmission(options);
  return async (request, ...rest) => {
    const admission = await admit(request, request.headers.get(FENCE_HEADER));
    if (admission.refusal !== null)
      return Response.json(admission.refusal.body, { status: admission.refusal.status });
    try {
      return await handler(request, ...rest);
    } finally {
      admission.leave();
    }
  };
}

/**
 * A route that runs under a lease: `export const POST = leasedRoute(leases, { name: "report" }, async (request, { lease,
 * signal }) => …)`. The signal aborts when the lease is over, and when the client is gone. While another has the lease
 * the answer is 409 with `Retry-After`; without the store, and after a lost lease, 503.
 */
export function leasedRoute<Rest extends unknown[]>(
  leases: Leases,
  options: HeldOptions<Request>,
  handler: (request: Request, held: Held, ...rest: Rest) => Answer,
): (request: Request, ...rest: Rest) => Promise<Response> {
  checkHeld("leasedRoute", leases, options, handler);
  return async (request, ...rest) => {
    let failed: unknown = null;
    try {
      return await runHeld(leases, options, request, request.signal, async (held) => {
        try {
          return await handler(request, held, ...rest);
        } catch (error) {
          failed = error;
          throw error;
        }
      });
    } catch (error) {
      // What the handler throws is for the framework.
      if (error === failed) throw error;
      if (error instanceof LeaseHeldError) return held(error);
      if (error instanceof LeaseLostError || error instanceof LeaseUnavailableError)
        return Response.json(bodyOf(error), { status: 503 });
      throw error;
    }
  };
}

function held(error: LeaseHeldError): Response {
  const { retryAfterMs, reason } = error;
  const headers: Record<string, string> =
    retryAfterMs === null ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) };
  return Response.json(bodyOf(error), { status: REASONS[reason].status, headers });
}

function bodyOf({ code, message }: LeaseError): { readonly code: string; readonly message: string } {
  return { code, message };
}

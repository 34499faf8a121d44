/**
 * The fence guard for Hono: `app.put("/…", fenceGuard({ keyOf }), handler)`. The next request for the same key begins
 * when the handler has returned its response. A body that is streamed after that must not write.
 */
import { FENCE_HEADER, fenceAdmission, type HttpGuardOptions } from "../guards/http.ts";

export type { HttpGuardOptions } from "../guards/http.ts";

/** The part of Hono's context that is used. */
export interface HonoContextLike {
  readonly req: { header(name: string): string | undefined };
}

export function fenceGuard<Context extends HonoContextLike>(
  options: HttpGuardOptions<Context>,
): (context: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const admit = fenceAdmission(options);
  return async (context, next) => {
    const admission = await admit(context, context.req.header(FENCE_HEADER));
    if (admission.refusal !== null)
      return Response.json(admission.refusal.body, { status: admission.refusal.status });
    try {
      await next();
    } finally {
      admission.leave();
    }
    return undefined;
  };
}

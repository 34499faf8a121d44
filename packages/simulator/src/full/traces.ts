/** The path through the lease service: a layer that gives each attempt a trace and compares it with the audit later. */
import { type CallContext, type Layer, layerOver } from "solehold/internal";
import type { Attempts } from "./attempts.ts";

/** Every command gets a trace of its own, and its outcome is kept under it. */
export function withTraces(attempts: Attempts, name: string): Layer {
  let count = 0;
  const traced = (context: CallContext): CallContext => {
    count += 1;
    return { ...context, traceId: `${name}-${count}` };
  };
  return (next) => {
    const watched = attempts.watched(next);
    return layerOver(next, {
      execute: async (request, context = {}) => {
        if (request.op !== "release" || request.next === undefined)
          return await watched.execute(request, traced(context));
        const served = { ...request.next, context: traced(request.next.context) };
        return await watched.execute({ ...request, next: served }, traced(context));
      },
    });
  };
}

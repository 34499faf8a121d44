/** The path through the lease service: a layer that gives each attempt a trace and compares it with the audit later. */
import { type Layer, layerOver } from "solehold/internal";
import type { Attempts } from "./attempts.ts";

/** Every command gets a trace of its own, and its outcome is kept under it. */
export function withTraces(attempts: Attempts, name: string): Layer {
  let count = 0;
  return (next) =>
    layerOver(next, {
      execute: async (request, context = {}) => {
        count += 1;
        const traceId = `${name}-${count}`;
        attempts.begin(traceId);
        const outcome = await next.execute(request, { ...context, traceId });
        attempts.end(traceId, outcome);
        return outcome;
      },
    });
}

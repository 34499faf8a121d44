/** An idempotency key gets the first answer again for the same arguments, and never for others. */

import type { AcquireRequest } from "solehold/internal";
import { keyId, recordFence } from "solehold/internal";
import type { Oracle, OracleContext } from "./oracle.ts";

interface FirstAnswer {
  readonly argumentsText: string;
  readonly fence: bigint;
  readonly answeredMs: number;
}

export function idempotency(context: OracleContext): Oracle {
  const name = "idempotency";
  const first = new Map<string, FirstAnswer>();
  return {
    name,
    onCallEnd: ({ request, outcome, startedMs }) => {
      if (request.op !== "acquire" || request.idempotencyKey === undefined || outcome === null) return;
      if (outcome.kind === "refused" && outcome.decision.reason === "IDEMPOTENCY_KEY_REUSED")
        context.sometimes("an idempotency key with other arguments was refused");
      // A store that forgets what it acknowledged gives the same fence again, to other arguments.
      if (outcome.kind !== "applied" || !context.expectations.fencesGrow) return;
      const id = `${keyId(request.key)} ${request.idempotencyKey}`;
      const { lease, replayed } = outcome.decision;
      const argumentsText = argumentsOf(request);
      const fence = recordFence(lease);
      const known = first.get(id);
      if (known === undefined || known.fence !== fence) {
        // A newer grant under the same key, whose first answer got lost, is new to us; an older one is wrong,
        // unless it was asked for before: its answer may have waited for a slow audit.
        const isOlder = known !== undefined && fence < known.fence;
        if (isOlder && startedMs >= known.answeredMs)
          context.fail(name, `the key of fence ${known.fence} was answered with fence ${fence}`);
        if (!isOlder) first.set(id, { argumentsText, fence, answeredMs: context.nowMs() });
      } else if (known.argumentsText !== argumentsText) {
        context.fail(name, `one key was answered for ${known.argumentsText} and for ${argumentsText}`);
      } else if (replayed) context.sometimes("a repeated call got the same grant");
    },
  };
}

function argumentsOf(request: AcquireRequest): string {
  return `holder ${request.holder} ttl ${request.ttlMs} purpose ${request.purpose}`;
}

/** The store and the audit trail with a meter on them; neither answers differently for it. */

import type { LeaseStore } from "solehold";
import type { AuditEvent, AuditTrail } from "solehold/internal";
import { decorateStore, type Env } from "solehold/internal";
import type { Metrics } from "./metrics.ts";

export function measuredStore(store: LeaseStore, metrics: Metrics, env: Env): LeaseStore {
  const timed = async <Result>(call: string, run: () => Promise<Result>): Promise<Result> => {
    const startMs = env.monotonicMs();
    const done = (result: "ok" | "failed"): void =>
      metrics.storeCalled(call, result, (env.monotonicMs() - startMs) / 1_000);
    try {
      const result = await run();
      done("ok");
      return result;
    } catch (error) {
      done("failed");
      throw error;
    }
  };
  const list = store.list?.bind(store);
  return decorateStore(store, {
    read: (keys) => timed("read", () => store.read(keys)),
    apply: async (writes) => {
      const reply = await timed("apply", () => store.apply(writes));
      metrics.collided(reply.results.filter(({ kind }) => kind === "conflict").length);
      return reply;
    },
    ...(list && { list: (query) => timed("list", () => list(query)) }),
  });
}

/** `onAudited` is called once an event is as safe as the trail makes it. */
export function observedAudit(audit: AuditTrail, onAudited: (event: AuditEvent) => void): AuditTrail {
  return {
    append: (event) => {
      const safe = audit.append(event);
      if (safe === undefined) onAudited(event);
      return safe?.then(() => onAudited(event));
    },
    flush: () => audit.flush(),
    head: () => audit.head(),
    query: (query) => audit.query(query),
    close: () => audit.close(),
  };
}

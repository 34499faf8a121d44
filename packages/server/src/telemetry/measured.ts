/** The store and the audit trail with a meter on them. Neither behaves differently for it. */
import type { Env, LeaseStore } from "solehold";
import type { AuditTrail } from "solehold/service";
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
  const { now, watch } = store;
  return {
    name: store.name,
    capabilities: store.capabilities,
    read: (keys) => timed("read", () => store.read(keys)),
    apply: async (writes) => {
      const reply = await timed("apply", () => store.apply(writes));
      metrics.collided(reply.results.filter(({ kind }) => kind === "conflict").length);
      return reply;
    },
    list: (query) => timed("list", () => store.list(query)),
    close: () => store.close(),
    ...(now === undefined ? {} : { now: () => now.call(store) }),
    ...(watch === undefined ? {} : { watch: (scope, listener) => watch.call(store, scope, listener) }),
  };
}

export function countedAudit(audit: AuditTrail, metrics: Metrics): AuditTrail {
  return {
    append: (event) => {
      const safe = audit.append(event);
      if (safe === undefined) metrics.audited(event);
      return safe?.then(() => metrics.audited(event));
    },
    hold: () => audit.hold?.() ?? letNothingGo,
    flush: () => audit.flush(),
    head: () => audit.head(),
    query: (query) => audit.query(query),
    close: () => audit.close(),
  };
}

function letNothingGo(): void {}

/** The store and the audit trail with a meter on them, called as suits a server; neither answers differently for it. */
import type { Env, LeaseStore, StoreCapabilities } from "solehold";
import type { AuditEvent, AuditNotes, AuditTrail } from "solehold/service";
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
  const { now, watch, notebook } = store;
  return {
    name: store.name,
    capabilities: inWholeTurns(store),
    read: (keys) => timed("read", () => store.read(keys)),
    apply: async (writes) => {
      const reply = await timed("apply", () => store.apply(writes));
      metrics.collided(reply.results.filter(({ kind }) => kind === "conflict").length);
      return reply;
    },
    list: (query) => timed("list", () => store.list(query)),
    close: () => store.close(),
    ...(now === undefined ? {} : { now: () => now.call(store) }),
    ...(notebook === undefined ? {} : { notebook: (name) => notebook.call(store, name) }),
    ...(watch === undefined ? {} : { watch: (scope, listener) => watch.call(store, scope, listener) }),
  };
}

/**
 * The embedded store would have the writes of a turn in two calls, so that one is prepared while the other is
 * synced. A server's turns are shared out by the messages of its clients already: one call a turn costs it less, and
 * brings more answers.
 */
function inWholeTurns({ name, capabilities }: LeaseStore): StoreCapabilities {
  const { minBatch: _minBatch, ...others } = capabilities;
  return name === "embedded" ? others : capabilities;
}

export function countedAudit(audit: AuditTrail, metrics: Metrics): AuditTrail {
  return {
    append: (event) => {
      const safe = audit.append(event);
      if (safe === undefined) metrics.audited(event);
      return safe?.then(() => metrics.audited(event));
    },
    ...(audit.appendThen === undefined
      ? {}
      : {
          appendThen: (event: AuditEvent, settled: (failure: unknown) => void) =>
            audit.appendThen?.(event, (failure) => {
              if (failure === null) metrics.audited(event);
              settled(failure);
            }),
        }),
    notes: countedNotes(audit, metrics),
    hold: () => audit.hold?.() ?? letNothingGo,
    flush: () => audit.flush(),
    head: () => audit.head(),
    query: (query) => audit.query(query),
    close: () => audit.close(),
  };
}

function countedNotes({ notes = null }: AuditTrail, metrics: Metrics): AuditNotes | null {
  if (notes === null) return null;
  return {
    make: (events) => notes.make(events),
    keep: (note, events) => {
      for (const event of events) metrics.audited(event);
      notes.keep(note, events);
    },
    drop: (note) => notes.drop(note),
  };
}

function letNothingGo(): void {}

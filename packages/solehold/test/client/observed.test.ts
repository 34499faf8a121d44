/** Those who observe a lease, its holder among them: what reaches them at once, in what bounds, and after a gap. */
import { describe, expect, it } from "vitest";
import type { LeaseChange } from "../../src/client/lease-diff.ts";
import { LeaseWatcher } from "../../src/client/lease-watcher.ts";
import { MAX_WATCHED } from "../../src/client/revocation-watch.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import { layerOver, MemoryExecutor } from "../../src/executor/index.ts";
import { StoreError, type StoreEvent, type StoreWatch } from "../../src/store/index.ts";
import { clientWorld } from "./helpers.ts";

describe("a holder whose signal is observed", () => {
  it("learns at once of a break, keeps its lease, and knows that it ends", async () => {
    const { leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "60s" });
    const { signal } = lease;
    await settle();
    await other("operator").break("job", { period: 0 });
    await settle();
    expect([lease.state, signal.aborted]).toEqual(["jeopardy", false]);
  });

  it("renews once for a break that lies beyond its ttl: its own renewals show that break, too", async () => {
    const { leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "60s" });
    void lease.signal;
    await settle();
    const execute = leases.executor.execute.bind(leases.executor);
    let renewals = 0;
    leases.executor.execute = (request, context) => {
      if (request.op === "renew") renewals += 1;
      // A storm of them would never let this test look.
      return renewals > 20 ? new Promise(() => undefined) : execute(request, context);
    };
    const operator = other("operator");
    await operator.break("job", { period: "180s" });
    await settle();
    expect(renewals).toBe(1);
    await operator.break("job", { period: "120s" });
    await settle();
    expect(renewals).toBe(2);
    expect(lease.state).toBe("held");
  });

  it("learns at once that another process replaced its grant", async () => {
    const { leases, other } = clientWorld({ policy: { reacquire: "supersede" } });
    const lease = await leases.acquire("job", { ttl: "60s" });
    const { signal } = lease;
    await settle();
    await other("me").acquire("job", { ttl: "60s" });
    await settle();
    expect([signal.aborted, lease.lossReason]).toEqual([true, "superseded"]);
  });

  it("is not renewed by an event when it renews by hand", async () => {
    const { leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "60s", autoRenew: false });
    void lease.signal;
    await settle();
    await other("operator").break("job", { period: "120s" });
    await settle();
    expect((await leases.inspect("job"))?.renewals).toBe(0);
  });

  it("is watched however many came and went before, and no watch stays open", async () => {
    const { leases, other } = clientWorld();
    let open = 0;
    const watch = leases.executor.watch.bind(leases.executor);
    leases.executor.watch = async (scope, listener) => {
      open += 1;
      const opened = await watch(scope, listener);
      return {
        close: async () => {
          open -= 1;
          await opened?.close();
        },
      } satisfies StoreWatch;
    };
    for (let index = 0; index < MAX_WATCHED; index += 1) {
      const lease = await leases.acquire(`job-${index}`, { ttl: "60s" });
      void lease.signal;
      await lease.release();
    }
    await settle();
    expect(open).toBe(0);
    const { signal } = await leases.acquire("job", { ttl: "60s" });
    await settle();
    await other("operator").revoke("job");
    await settle();
    expect(signal.aborted).toBe(true);
  });

  it("beyond the bound of watches learns of it at the next renewal", async () => {
    const { env, leases, other } = clientWorld();
    const signals: AbortSignal[] = [];
    for (let index = 0; index <= MAX_WATCHED; index += 1)
      signals.push((await leases.acquire(`job-${index}`, { ttl: "60s" })).signal);
    await settle();
    const operator = other("operator");
    await operator.revoke(`job-${MAX_WATCHED - 1}`);
    await operator.revoke(`job-${MAX_WATCHED}`);
    await settle();
    expect(signals.slice(-2).map(({ aborted }) => aborted)).toEqual([true, false]);
    await env.advance(25_000);
    expect(signals.at(-1)?.aborted).toBe(true);
  });
});

describe("observe", () => {
  it("shows nothing of a lease whose name only begins alike", async () => {
    const { leases, other } = clientWorld();
    const them = other("them");
    const leaders: (string | null)[] = [];
    const observing = (async () => {
      for await (const leader of leases.observe("boss")) leaders.push(leader?.holder ?? null);
    })();
    await settle();
    await them.acquire("boss/2", { ttl: "60s" });
    await settle();
    await other("heir").acquire("boss", { ttl: "60s" });
    await settle();
    await leases.close();
    await observing;
    expect(leaders).toEqual([null, "heir"]);
  });
});

describe("a watcher", () => {
  /** Its store's events come as the test gives them; `duringList` runs between a listing and its answer. */
  async function follow(duringList: (memory: MemoryExecutor) => Promise<void> = async () => undefined) {
    const env = new ManualEnv();
    const memory = new MemoryExecutor({ env, policy: { generations: "count" } });
    const key = { tenant: "default", name: "job" };
    await memory.execute({ op: "acquire", key, holder: "me", ttlMs: 60_000, token: "t" });
    let emit: (event: StoreEvent) => void = () => undefined;
    let during = duringList;
    const executor = layerOver(memory, {
      watch: async (_scope, listener) => {
        emit = listener;
        return { close: async () => undefined };
      },
      list: async (query) => {
        const page = await memory.list(query);
        const run = during;
        during = async () => undefined;
        await run(memory);
        return page;
      },
    });
    const forward = async (): Promise<void> => {
      const [stored] = (await memory.store.read([key])).records;
      emit({ kind: "changed", key, stored: stored ?? null });
    };
    const lines: string[] = [];
    const stop = new AbortController();
    const onChange = ({ kind, view }: LeaseChange): void => void lines.push(`${kind} ${view.fence}`);
    const options = { tenant: "default", prefix: "", everyMs: 1_000, onChange, onTrouble: () => undefined };
    const watching = new LeaseWatcher({ ...options, executor, env }).run(stop.signal).catch(() => undefined);
    const end = async (): Promise<void> => {
      stop.abort();
      await watching;
    };
    return { env, memory, key, executor, lines, forward, end, reset: () => emit({ kind: "reset" }) };
  }

  it("shows what changed between its watch and its first listing", async () => {
    const started: { forward?: () => Promise<void> } = {};
    const { lines, end } = await follow(async (memory) => {
      const key = { tenant: "default", name: "job" };
      await memory.execute({ op: "release", key, holder: "me", token: "t" });
      await started.forward?.();
    }).then(async (world) => {
      started.forward = world.forward;
      await settle();
      return world;
    });
    expect(lines).toEqual(["held 1", "released 1"]);
    await end();
  });

  it("finds after a gap that a record is gone", async () => {
    const { memory, key, lines, reset, end } = await follow();
    await settle();
    const [stored] = (await memory.store.read([key])).records;
    const expected = stored?.kind === "found" ? stored.version : null;
    await memory.store.apply([{ key, expected, next: null }]);
    reset();
    await settle();
    expect(lines).toEqual(["held 1", "removed 1"]);
    await end();
  });

  it("looks again after a gap until the store answers", async () => {
    const { env, memory, key, executor, lines, reset, end } = await follow();
    await settle();
    await memory.execute({ op: "release", key, holder: "me", token: "t" });
    const { list } = executor;
    executor.list = async () => {
      throw new StoreError("unreachable", "down", { outcome: "not-applied" });
    };
    reset();
    await settle();
    executor.list = list;
    await env.advance(1_000);
    expect(lines).toEqual(["held 1", "released 1"]);
    await end();
  });
});

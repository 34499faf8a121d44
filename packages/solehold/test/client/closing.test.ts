// How handles, waits and elections end: by close, drain and abandon, by the store's word, and before they began.
import { describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { LeasesClosedError, LeaseUnavailableError } from "../../src/client/errors.ts";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { MemoryStore, StoreError, type WatchListener } from "../../src/store/index.ts";
import { ClockedStore } from "../executor/clocked-store.ts";
import { runUntilSettled } from "../executor/helpers.ts";
import { clientWorld } from "./helpers.ts";

/** The store is shared by all clients of a test: closing one of them must not close it for the others. */
function sharedWorld(): ReturnType<typeof clientWorld> {
  const world = clientWorld();
  world.leases.executor.close = async () => undefined;
  return world;
}

describe("close", () => {
  it("ends handles at once, and leaves their leases to their ttl", async () => {
    const { env, leases, other } = sharedWorld();
    const lease = await leases.acquire("job", { ttl: "10s" });
    const { signal } = lease;
    await leases.close();
    expect([lease.state, lease.lossReason, signal.aborted]).toEqual(["lost", "closed", true]);
    const them = other("them");
    expect((await them.tryAcquire("job")).ok).toBe(false);
    await env.advance(10_000);
    expect((await them.tryAcquire("job")).ok).toBe(true);
  });

  it("with release: true releases what is held", async () => {
    const { leases, other } = sharedWorld();
    await leases.acquire("job", { ttl: "10s" });
    await leases.close({ release: true });
    expect((await other("them").tryAcquire("job")).ok).toBe(true);
  });

  it("ends waits with an error of its own, and later calls too", async () => {
    const { leases, other } = clientWorld();
    await other("them").acquire("job");
    const waiting = leases.acquire("job", { wait: "forever" });
    waiting.catch(() => undefined);
    await settle();
    await leases.close();
    await expect(waiting).rejects.toBeInstanceOf(LeasesClosedError);
    await expect(leases.acquire("other")).rejects.toMatchObject({ code: "LEASES_CLOSED", retryable: false });
    await expect(leases.tryAcquire("other")).rejects.toBeInstanceOf(LeasesClosedError);
  });

  it("ends elections: a leader's term, and a candidate's wait", async () => {
    const { env, leases, other } = clientWorld();
    const terms: Lease[] = [];
    const leading = (async () => {
      for await (const term of leases.elect("boss")) {
        terms.push(term);
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
      }
    })();
    await settle();
    const rival = other("them");
    const standing = (async () => {
      for await (const _term of rival.elect("boss")) throw new Error("it is taken");
    })();
    await settle();
    expect(terms).toHaveLength(1);
    await rival.close();
    await standing;
    await leases.close();
    await leading;
    // What is known of the key is kept for a moment after the last waiter has left.
    await env.advance(5_000);
    expect(env.pendingTimers).toBe(0);
  });
});

describe("drain", () => {
  it("releases everything that is held, and refuses what comes later", async () => {
    const { leases, other } = clientWorld();
    const held = [await leases.acquire("a"), await leases.acquire("b")];
    await leases.drain();
    expect(held.map(({ lossReason }) => lossReason)).toEqual(["released", "released"]);
    const them = other("them");
    expect([(await them.tryAcquire("a")).ok, (await them.tryAcquire("b")).ok]).toEqual([true, true]);
    await expect(leases.acquire("a")).rejects.toBeInstanceOf(LeasesClosedError);
  });
});

describe("abandon", () => {
  it("stops renewing and releases nothing", async () => {
    const { env, store, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "9s" });
    lease.abandon();
    expect([lease.state, lease.lossReason]).toEqual(["released", "abandoned"]);
    expect(await lease.release()).toEqual({ released: false, reason: "already-gone" });
    const { apply } = store.calls;
    await env.advance(8_000);
    expect(store.calls.apply).toBe(apply);
    const them = other("them");
    expect((await them.tryAcquire("job")).ok).toBe(false);
    await env.advance(1_000);
    expect((await them.tryAcquire("job")).ok).toBe(true);
  });
});

describe("a grant that arrives after its own end", () => {
  /** The first answer takes a minute; later ones come at once. */
  async function slowWorld() {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const leases = new Leases({ executor: new StoreExecutor({ store, env }), env, holder: "me" });
    await leases.inspect("job");
    let slow = 1;
    store.afterReading = async () => {
      slow -= 1;
      if (slow >= 0) await env.advance(4_000);
    };
    return { env, leases };
  }

  it("is not handed out: acquire tries again within its wait", async () => {
    const { env, leases } = await slowWorld();
    const lease = await runUntilSettled(env, leases.acquire("job", { ttl: "3s", wait: "60s" }));
    expect(lease.isHeld()).toBe(true);
  });

  it.each(["tryAcquire", "acquire"] as const)("fails %s that does not wait", async (method) => {
    const { env, leases } = await slowWorld();
    const options = method === "acquire" ? { ttl: "3s", wait: 0 } : { ttl: "3s" };
    const failed = leases[method]("job", options as { ttl: "3s" });
    failed.catch(() => undefined);
    await env.advance(10_000);
    await expect(failed).rejects.toBeInstanceOf(LeaseUnavailableError);
  });

  it("never starts the work of run", async () => {
    const { env, leases } = await slowWorld();
    const states: string[] = [];
    const running = leases.run("job", { ttl: "3s", wait: "60s" }, (lease) => void states.push(lease.state));
    await runUntilSettled(env, running);
    expect(states).toEqual(["held"]);
  });
});

describe("a holder", () => {
  it("learns of a revocation at once where the store announces changes", async () => {
    const { leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "60s" });
    const { signal } = lease;
    await settle();
    await other("operator").revoke("job");
    await settle();
    expect(signal.aborted).toBe(true);
    expect(lease.lossReason).toBe("revoked");
  });

  it.each(["before its watch was open", "while its watch had a gap"])(
    "learns of a revocation %s",
    async (when) => {
      const isOpenLate = when.startsWith("before");
      const env = new ManualEnv();
      const executor = new StoreExecutor({ store: new MemoryStore({ env }), env });
      const listeners: WatchListener[] = [];
      let openWatch = (): void => undefined;
      const opened = new Promise<void>((resolve) => {
        openWatch = resolve;
      });
      executor.watch = async (_scope, listener) => {
        listeners.push(listener);
        if (isOpenLate) await opened;
        return { close: async () => undefined };
      };
      const leases = new Leases({ executor, env, holder: "me" });
      const lease = await leases.acquire("job", { ttl: "60s" });
      const { signal } = lease;
      await settle();
      await executor.execute({ op: "revoke", key: { tenant: "default", name: "job" } });
      await settle();
      expect(signal.aborted).toBe(false);
      if (isOpenLate) openWatch();
      else for (const listener of listeners) listener({ kind: "reset" });
      await settle();
      expect([signal.aborted, lease.lossReason]).toEqual([true, "revoked"]);
    },
  );

  it("learns at once that the store lost data, with a reason of its own", async () => {
    const { env, store, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "9s" });
    store.apply = async () => {
      throw new StoreError("data-loss", "the store lost data", { outcome: "not-applied" });
    };
    await env.advance(4_000);
    expect([lease.state, lease.lossReason]).toEqual(["lost", "store-lost-data"]);
  });

  it("is called back after each renewal", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "9s" });
    const renewals: number[] = [];
    lease.onRenewed((remainingMs) => renewals.push(remainingMs));
    await env.advance(8_000);
    expect(renewals.length).toBeGreaterThanOrEqual(2);
    expect(renewals.every((remainingMs) => remainingMs > 8_000)).toBe(true);
  });
});

describe("options", () => {
  it("that do not exist are refused by their name", async () => {
    const { leases } = clientWorld();
    const unknown = { drift: 5 } as object;
    await expect(leases.acquire("job", unknown)).rejects.toThrow("acquire has no option 'drift'");
    await expect(leases.tryAcquire("job", { wait: 5 } as object)).rejects.toThrow("no option 'wait'");
    await expect(leases.revoke("job", { fense: 5n } as object)).rejects.toThrow("no option 'fense'");
    await expect(leases.break("job", { period: "5s", after: 1 } as never)).rejects.toThrow(
      "no option 'after'",
    );
    await expect(leases.watch("job", { each: "1s" } as object).next()).rejects.toThrow("no option 'each'");
    await expect(leases.observe("job", { each: "1s" } as object).next()).rejects.toThrow("no option 'each'");
    await expect(leases.watch({ prefix: "job" } as never).next()).rejects.toThrow("prefix must be a string");
    await expect(leases.list({ status: "held" } as object).next()).rejects.toThrow("no option 'status'");
    await expect(connect("memory:", { tennant: "a" } as object)).rejects.toThrow(
      "connect has no option 'tennant': it knows tenant, ",
    );
  });

  it("must be an object where one is needed", async () => {
    const { leases } = clientWorld();
    await expect(leases.break("job", undefined as never)).rejects.toThrow(
      "break takes an object of options, got undefined",
    );
  });

  it("of connect are checked before anything is opened: drift and policy by field", async () => {
    const refused: readonly (readonly [object, string])[] = [
      [{ drift: 5 }, "drift.driftRatio must be from 0 to below 0.5, got undefined"],
      [{ drift: { driftRatio: 0.5, tickMs: 2 } }, "drift.driftRatio must be from 0 to below 0.5, got 0.5"],
      [{ drift: { driftRatio: 0.01, tickMs: 0 } }, "drift.tickMs must be at least 1, got 0"],
      [{ policy: { maxTTL: 5 } }, "policy has no field 'maxTTL': it knows "],
    ];
    for (const [options, message] of refused) {
      await expect(connect("memory:", options)).rejects.toThrow(message);
      await expect(connect("http://127.0.0.1:1", options)).rejects.toThrow(message);
    }
  });

  it("that are yes or no must be booleans", async () => {
    const { leases } = clientWorld();
    const text = { autoRenew: "no" } as object;
    await expect(leases.acquire("job", text)).rejects.toThrow('autoRenew must be true or false, got "no"');
  });

  it("with approvals are refused where nothing checks them", async () => {
    const { leases } = clientWorld();
    const approval = { nonce: "0".repeat(16), approvals: [] };
    const refused = leases.acquire("job", { approval });
    await expect(refused).rejects.toMatchObject({ code: "LEASE_REFUSED", field: "approval" });
    expect(await leases.inspect("job")).toBeNull();
  });

  it("may be left out of run", async () => {
    const { leases } = clientWorld();
    expect(await leases.run("job", (lease) => lease.name)).toBe("job");
  });
});

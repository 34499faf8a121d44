/** A holder to which two things happen at once: a lost answer and a close, a revocation and a release. */
import { describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import {
  type CommandOutcome,
  type LeaseExecutor,
  type LeaseRequest,
  layerOver,
  MemoryExecutor,
} from "../../src/executor/index.ts";
import { StoreError } from "../../src/store/index.ts";
import { clientWorld } from "./helpers.ts";

/** Answers pass when the test lets them: what was decided stands, but nobody knows yet. */
class Wire {
  readonly #kept: (() => void)[] = [];
  /** Answers to these are kept back. */
  keeps: LeaseRequest["op"] | null = null;
  /** Answers to these are lost. */
  loses: LeaseRequest["op"] | null = null;

  over(executor: LeaseExecutor, features: LeaseExecutor["features"] = executor.features): LeaseExecutor {
    return layerOver(executor, {
      features,
      close: async () => undefined,
      execute: async (request, context) => {
        const outcome = await executor.execute(request, context);
        if (request.op === this.loses) return LOST;
        if (request.op === this.keeps) await new Promise<void>((resolve) => this.#kept.push(resolve));
        return outcome;
      },
    });
  }

  get kept(): number {
    return this.#kept.length;
  }

  letGo(): void {
    for (const go of this.#kept.splice(0)) go();
  }
}

const LOST: CommandOutcome = {
  kind: "unsettled",
  outcome: "unknown",
  cause: new StoreError("timeout", "the answer was lost", { outcome: "unknown" }),
};

/** A client of something that queues, as a server does: its acquires carry a token of the client's. */
function serverWorld() {
  const env = new ManualEnv();
  const memory = new MemoryExecutor({ env, policy: { generations: "count" } });
  const wire = new Wire();
  const leases = new Leases({ executor: wire.over(memory, new Set(["queue"])), env, holder: "me" });
  const holder = async (): Promise<string | null> => {
    const view = await memory.read({ tenant: "default", name: "job" });
    return view?.live === true ? view.holder : null;
  };
  return { env, memory, wire, leases, holder };
}

describe("a grant whose answer was lost", () => {
  it("does not bar the key until its ttl ends: tryAcquire releases it", async () => {
    const { wire, leases, holder } = serverWorld();
    wire.loses = "acquire";
    await expect(leases.tryAcquire("job", { ttl: "60s" })).rejects.toMatchObject({ outcome: "unknown" });
    await settle();
    expect(await holder()).toBeNull();
  });

  it("is released whichever slot of the name it may have been", async () => {
    const { wire, leases, memory } = serverWorld();
    wire.loses = "acquire";
    for (let slot = 0; slot < 3; slot += 1)
      await expect(leases.tryAcquire("gpu", { slots: 3 })).rejects.toMatchObject({ outcome: "unknown" });
    await settle();
    const { leases: listed } = await memory.list({ tenant: "default", prefix: "gpu", limit: 10 });
    expect(listed.length).toBeGreaterThan(0);
    expect(listed.filter(({ live }) => live)).toEqual([]);
  });

  it("is kept under an idempotency key: the same call gets it later", async () => {
    const { wire, leases, holder } = serverWorld();
    wire.loses = "acquire";
    const options = { ttl: "60s", idempotencyKey: "order-7" } as const;
    await expect(leases.tryAcquire("job", options)).rejects.toMatchObject({ outcome: "unknown" });
    await settle();
    expect(await holder()).toBe("me");
    wire.loses = null;
    expect((await leases.tryAcquire("job", options)).ok).toBe(true);
  });

  it("is released even so when the caller stopped waiting by itself", async () => {
    const { env, wire, leases, holder } = serverWorld();
    wire.loses = "acquire";
    const stop = new AbortController();
    const { signal } = stop;
    const options = { ttl: "60s", idempotencyKey: "order-7", wait: "20s", signal } as const;
    const waiting = leases.acquire("job", options);
    waiting.catch(() => undefined);
    await env.advance(1);
    expect(await holder()).toBe("me");
    stop.abort(new Error("changed my mind"));
    await expect(waiting).rejects.toThrow("changed my mind");
    await settle();
    expect(await holder()).toBeNull();
  });

  it.each(["drain", "close"] as const)("is released before %s has ended", async (how) => {
    const { wire, leases, holder } = serverWorld();
    wire.loses = "acquire";
    wire.keeps = "release";
    await expect(leases.tryAcquire("job", { ttl: "60s" })).rejects.toMatchObject({ outcome: "unknown" });
    await settle();
    let ended = false;
    const ending = leases[how]().then(() => {
      ended = true;
    });
    await settle();
    expect([wire.kept, ended]).toEqual([1, false]);
    wire.letGo();
    await ending;
    expect(await holder()).toBeNull();
  });

  it("that came after its own end is released, so that it ends before its record does", async () => {
    const { env, leases, store } = clientWorld();
    await leases.inspect("job");
    const apply = store.apply.bind(store);
    store.apply = async (writes) => {
      store.apply = apply;
      const reply = await apply(writes);
      env.pause(990);
      return reply;
    };
    await expect(leases.tryAcquire("job", { ttl: 1_000 })).rejects.toMatchObject({ outcome: "not-applied" });
    expect(await leases.inspect("job")).toMatchObject({ state: "released" });
  });
});

describe("a handle", () => {
  it("is over from the start when its grant arrives after close", async () => {
    const env = new ManualEnv();
    const wire = new Wire();
    const leases = new Leases({ executor: wire.over(new MemoryExecutor({ env })), env, holder: "me" });
    wire.keeps = "acquire";
    const acquiring = leases.tryAcquire("job", { ttl: "9s" });
    await settle();
    await leases.close();
    wire.letGo();
    const attempt = await acquiring;
    if (!attempt.ok) throw new Error("it was granted");
    const { lease } = attempt;
    expect([lease.state, lease.lossReason, lease.signal.aborted]).toEqual(["lost", "closed", true]);
  });

  it("believes the later of two renewals, whichever is answered last", async () => {
    const env = new ManualEnv();
    const wire = new Wire();
    const leases = new Leases({ executor: wire.over(new MemoryExecutor({ env })), env, holder: "me" });
    const lease = await leases.acquire("job", { ttl: "10s", autoRenew: false });
    await env.advance(1_000);
    wire.keeps = "renew";
    const slow = lease.renew();
    await env.advance(4_000);
    wire.keeps = null;
    await lease.renew();
    const remainingMs = lease.remaining();
    wire.letGo();
    await slow;
    expect(lease.remaining()).toBe(remainingMs);
  });
});

describe("a set of leases", () => {
  it("is granted anew what it lost while it waited for another", async () => {
    const { env, leases, other } = clientWorld();
    const them = other("them");
    const taken = await them.acquire("b");
    const acquiring = leases.acquireAll(["a", "b"], { wait: "5m" });
    await env.advance(10);
    await them.revoke("a");
    await env.advance(120_000);
    await taken.release();
    await env.advance(10);
    const set = await acquiring;
    expect([set.isHeld(), (await leases.inspect("a"))?.live]).toEqual([true, true]);
  });

  it("tells the store of each of its leases that its holder has stopped, also of a revoked one", async () => {
    const { leases, other } = clientWorld();
    const set = await leases.acquireAll(["a", "b"], { ttl: "60s" });
    void set.signal;
    await settle();
    const operator = other("operator");
    await operator.revoke("a");
    await settle();
    expect(set.isHeld()).toBe(false);
    await set.release();
    for (const name of ["a", "b"]) expect((await operator.tryAcquire(name)).ok).toBe(true);
  });
});

describe("release", () => {
  it("of a revoked lease says that its holder has stopped, which ends the cool-down", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "60s" });
    const operator = other("operator");
    await operator.revoke("job");
    await env.advance(25_000);
    expect(lease.lossReason).toBe("revoked");
    expect(await operator.tryAcquire("job")).toMatchObject({ ok: false, reason: "LEASE_REVOKED" });
    expect(await lease.release()).toEqual({ released: true, reason: "released" });
    expect((await operator.tryAcquire("job")).ok).toBe(true);
  });

  it("of a lease that ran out here, and not yet in the store, frees the key", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: "60s", autoRenew: false });
    await env.advance(59_500);
    expect([lease.state, lease.lossReason]).toEqual(["lost", "expired"]);
    const them = other("them");
    expect((await them.tryAcquire("job")).ok).toBe(false);
    expect(await lease.release()).toEqual({ released: true, reason: "released" });
    expect((await them.tryAcquire("job")).ok).toBe(true);
  });
});

/**
 * What a holder goes through when the real server behind its store is stopped, killed, mute or slow, or
 * when the clocks of clients are wrong. One suite, every engine.
 */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { LeaseLostError, LeaseUnavailableError } from "../../src/client/errors.ts";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import { ShiftedEnv } from "../../src/conformance/shifted-env.ts";
import { delay, type Env, realEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { type Engine, type FaultProxy, startProxy } from "../engines/index.ts";
import { type ClientOptions, FAULT_ENGINES } from "./engines.ts";
import { Escapes, WitnessEnv, WriteTrap } from "./witness.ts";

const SHIFTS_MS = [-600_000, -11_000, 11_000, 600_000];
/** Long enough to stop all processes of a server within it; where the machine is busy, one of the longer ones is. */
const FREEZE_TTLS_MS = [1_500, 6_000, 24_000];

describe.each(FAULT_ENGINES)("a holder on $title", ({ ttlMs, start, open, kill }) => {
  let server: Engine;
  let proxy: FaultProxy;
  const escapes = new Escapes();
  const opened: Leases[] = [];

  beforeAll(async () => {
    server = await start();
    proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
  });

  afterAll(async () => {
    await proxy?.close();
    await server?.stop();
  });

  beforeEach(() => escapes.listen());

  afterEach(async () => {
    proxy.heal();
    for (const leases of opened.splice(0)) await leases.close();
    escapes.stop();
    expect(escapes.seen.splice(0)).toEqual([]);
  });

  interface Client {
    readonly leases: Leases;
    readonly executor: StoreExecutor;
    readonly trap: WriteTrap;
  }

  async function client(holder: string, options: ClientOptions = {}): Promise<Client> {
    const env: Env = options.env ?? realEnv;
    const trap = new WriteTrap(await open(server, options));
    const executor = new StoreExecutor({ store: trap.store, env });
    const leases = new Leases({ executor, env, holder });
    opened.push(leases);
    return { leases, executor, trap };
  }

  /** A lease whose server was frozen 50 ms after the grant. */
  async function frozen(leases: Leases, env: Env): Promise<Lease> {
    let lease: Lease | null = null;
    for (const ttl of FREEZE_TTLS_MS) {
      if (lease !== null) await server.resume();
      await lease?.release();
      lease = await leases.acquire("freeze", { ttl });
      await delay(env, 50);
      await server.pause();
      if (lease.isHeld()) return lease;
    }
    throw new Error("no lease was held when its server had been stopped");
  }

  it("whose server freezes 50 ms after the grant learns it at or before the end of its lease", async () => {
    const env = new WitnessEnv();
    const { leases } = await client("frozen", { env });
    const lease = await frozen(leases, env);
    try {
      const endsMs = env.monotonicMs() + lease.remaining();
      const toldForMs = await new Promise<number>((resolve) => {
        lease.signal.addEventListener("abort", () => resolve(env.plannedForMs));
      });
      expect(toldForMs).toBeLessThanOrEqual(endsMs);
      expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
      expect(lease.state).toBe("lost");
      expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    } finally {
      await server.resume();
    }
    await lease.release();
  });

  it("whose server is killed learns it, and when it is back the key goes on with a higher fence", async () => {
    const { leases } = await client("bereft");
    const lease = await leases.acquire("kill", { ttl: ttlMs });
    await kill(server);
    if (!lease.signal.aborted) await once(lease.signal, "abort");
    expect(["unreachable", "expired"]).toContain(lease.lossReason);
    await server.restart();
    const again = await leases.acquire("kill", { ttl: ttlMs, wait: "2m" });
    expect(again.isHeld()).toBe(true);
    expect(again.fence).toBeGreaterThan(lease.fence);
    const other = await client("other");
    expect(await other.leases.tryAcquire("kill")).toMatchObject({ ok: false, holder: "bereft" });
    await again.release();
    const next = await other.leases.acquire("kill", { ttl: ttlMs });
    expect(next.fence).toBeGreaterThan(again.fence);
    await next.release();
  });

  it("whose acquire was applied while its reply was lost has that very grant, and is not locked out", async () => {
    const { leases, trap } = await client("mute", { proxy, timeoutMs: 3_000 });
    const witness = await client("witness");
    const acquireMute = async () => {
      await (await leases.acquire("lost-reply", { ttl: ttlMs })).release();
      const lost = new Promise<void>((resolve) => {
        trap.beforeNextWrite(() => {
          proxy.dropReplies();
          resolve(proxy.nextDroppedReply());
        });
      });
      const acquiring = leases.acquire("lost-reply", { ttl: 20_000, wait: 0 });
      const ended = acquiring.catch(() => null);
      await lost;
      const applied = await liveGrant(witness.executor, "lost-reply");
      proxy.heal();
      // What was lost may have been the greeting of a new connection: then nothing was applied.
      if (applied === null) await (await ended)?.release();
      return applied === null ? null : { lease: await acquiring, applied };
    };
    let grant = await acquireMute();
    while (grant === null) grant = await acquireMute();
    const { lease, applied } = grant;
    expect(lease.fence).toBe(applied);
    expect(lease.isHeld()).toBe(true);
    expect(await lease.renew()).toBe(true);
    expect(await lease.release()).toEqual({ released: true, reason: "released" });
    await (await witness.leases.acquire("lost-reply", { ttl: ttlMs, wait: 0 })).release();
  });

  it("whose acquire is answered after its ttl is not handed a lease", async () => {
    const { leases, trap } = await client("stalled", { proxy, timeoutMs: 10_000 });
    await (await leases.acquire("stall", { ttl: ttlMs })).release();
    trap.beforeNextWrite(() => proxy.freeze());
    const sentMs = realEnv.monotonicMs();
    const attempted = leases.tryAcquire("stall", { ttl: ttlMs }).catch((error: unknown) => error);
    while (realEnv.monotonicMs() < sentMs + ttlMs + 100) await delay(realEnv, 20);
    proxy.heal();
    await expect(attempted).resolves.toBeInstanceOf(LeaseUnavailableError);
    const again = await leases.acquire("stall", { ttl: ttlMs, wait: "2m" });
    expect(again.isHeld()).toBe(true);
    await again.release();
  });

  it("is alone, although the clocks of the clients are wrong by -10 min, -11 s, +11 s and +10 min", async () => {
    const clients = await Promise.all(
      SHIFTS_MS.map((byMs) => client(`shift-${byMs}`, { env: new ShiftedEnv(realEnv, byMs) })),
    );
    const grants: Lease[] = [];
    await Promise.all(
      clients.map(async ({ leases }) => {
        // Nobody releases it: each has to wait until the lease of the one before is over.
        const lease = await leases.acquire("clocks", { ttl: ttlMs, wait: "2m", autoRenew: false });
        expect(grants.filter((earlier) => earlier.isHeld()).map(({ holder }) => holder)).toEqual([]);
        grants.push(lease);
        expect(lease.isHeld()).toBe(true);
      }),
    );
    const fences = grants.map(({ fence }) => fence);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)));
    expect(fences).toHaveLength(SHIFTS_MS.length);
  });
});

/** The fence of the grant that stands in the store; null when none shows within a second. */
async function liveGrant(executor: StoreExecutor, name: string): Promise<bigint | null> {
  const untilMs = realEnv.monotonicMs() + 1_000;
  while (realEnv.monotonicMs() < untilMs) {
    const view = await executor.read({ tenant: "default", name });
    if (view?.live) return view.fence;
    await delay(realEnv, 10);
  }
  return null;
}

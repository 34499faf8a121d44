/** A cluster of three of our own, under load, while its members are killed, stopped and brought back. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connect, type Lease, type Leases } from "../../../src/client/index.ts";
import { ShiftedEnv } from "../../../src/conformance/shifted-env.ts";
import { realEnv } from "../../../src/env/index.ts";
import { FencedResource } from "../../../src/guards/index.ts";
import type { LeaseStore } from "../../../src/store/index.ts";
import { openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { type EngineProcess, type EtcdEngine, startEtcd } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { EventLog, newPrefix, nonceIn, opened, storeUrl, until } from "./support.ts";

const TEN_MINUTES_MS = 600_000;
const prefix = newPrefix();
const closables: { close(): Promise<void> }[] = [];
let cluster: EtcdEngine;

beforeAll(async () => {
  cluster = await startEtcd({ flags: ["--election-timeout=500", "--heartbeat-interval=50"] });
});

afterEach(async () => {
  for (const each of closables.splice(0)) await each.close();
});

afterAll(async () => {
  await cluster?.stop();
});

function kept<Value extends { close(): Promise<void> }>(value: Value): Value {
  closables.push(value);
  return value;
}

async function open(timeoutMs = 3_000): Promise<LeaseStore> {
  return kept(await opened({ url: storeUrl(cluster.urls, prefix), timeoutMs }));
}

/** Until it is certain that it was written, as the executor does it: by its nonce. */
async function writeSurely(store: LeaseStore, name: string, generation: bigint): Promise<string> {
  const { key, nonce } = recordOf(name);
  return until(`generation ${generation} is written`, async () => {
    const [stored] = (await store.read([key])).records;
    if (stored?.kind === "found" && stored.record.nonce === nonce) return nonce;
    const expected = stored?.kind === "found" ? stored.version : null;
    const result = await applyOne(store, writeOf(recordOf(name, { nonce, generation }), expected));
    return result.kind === "applied" ? nonce : null;
  });
}

/** Several clients whose wall clocks are far apart, all after one lease, each counting up what it guards. */
class Crowd {
  readonly counter = new FencedResource(0);
  readonly fences: bigint[] = [];
  finished = 0;
  #stopped = false;
  readonly #inside = new Set<Lease>();
  readonly #workers: Promise<unknown>;

  constructor(clients: readonly Leases[]) {
    this.#workers = Promise.all(clients.map((leases) => this.#work(leases)));
    // When a test fails, its clients are closed while they work, and nobody waits for these any more.
    this.#workers.catch(() => undefined);
  }

  /** Rejects with what went wrong, if a worker ends before. */
  async reaches(count: number): Promise<void> {
    const goal = this.finished + count;
    const reached = until(`${count} more turns`, async () => (this.finished >= goal ? true : null));
    await Promise.race([reached, this.#workers]);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#workers;
  }

  async #work(leases: Leases): Promise<void> {
    while (!this.#stopped) {
      await leases.run("crowd", { ttl: 1_500, wait: "2m" }, async (lease) => {
        const others = [...this.#inside].filter(({ signal }) => !signal.aborted);
        expect(others.map(({ holder }) => holder)).toEqual([]);
        this.#inside.add(lease);
        this.fences.push(lease.fence);
        const seen = this.counter.state;
        await new Promise((resolve) => setTimeout(resolve, 5));
        // A holder that has to stop does not write; its turn does not count.
        if (!lease.signal.aborted) {
          this.counter.write(lease, () => seen + 1);
          this.finished += 1;
        }
        this.#inside.delete(lease);
      });
    }
  }
}

async function connectLeases(shiftMs: number): Promise<Leases> {
  const url = storeUrl(cluster.urls, prefix, "?timeoutMs=3000&memberTimeoutMs=600");
  return kept(await until("it connects", () => connect(url, { env: new ShiftedEnv(realEnv, shiftMs) })));
}

async function startCrowd(): Promise<Crowd> {
  return new Crowd(await Promise.all([0, TEN_MINUTES_MS, -TEN_MINUTES_MS].map(connectLeases)));
}

function expectExact({ counter, finished, fences }: Crowd): void {
  expect(counter.state).toBe(finished);
  expect(fences.every((fence, index) => index === 0 || fence > fences[index - 1]!)).toBe(true);
}

async function restart(member: EngineProcess): Promise<void> {
  await member.restart();
  await cluster.leader();
}

describe("under load", () => {
  it("the leader is killed: one holder at a time, fences grow, the counter is exact", async () => {
    const crowd = await startCrowd();
    await crowd.reaches(5);
    const leader = await cluster.leader();
    await leader.kill();
    await crowd.reaches(5);
    await restart(leader);
    await crowd.reaches(5);
    await crowd.stop();
    expectExact(crowd);
  });

  it("each member in turn is stopped and goes on: the same holds", async () => {
    const crowd = await startCrowd();
    for (const member of cluster.processes) {
      await member.pause();
      await crowd.reaches(4);
      await member.resume();
    }
    await crowd.stop();
    expectExact(crowd);
  });

  it("a watch shows every write, in order, while the members are killed one after the other", async () => {
    const [watching, writing] = [await open(), await open()];
    const log = new EventLog();
    await watching.watch?.({ tenant: "default", prefix: "watched" }, log.listener);
    const nonces: string[] = [];
    for (const [round, member] of cluster.processes.entries()) {
      nonces.push(await writeSurely(writing, "watched", BigInt(2 * round + 1)));
      await member.kill();
      nonces.push(await writeSurely(writing, "watched", BigInt(2 * round + 2)));
      await restart(member);
    }
    for (const nonce of nonces) await log.write(nonce);
    const seen = log.events.map(nonceIn);
    expect(seen.filter((nonce, index) => nonce !== seen[index - 1])).toEqual(nonces);
  });
});

it("a member that is stopped leaves at most one write unknown; the next one succeeds elsewhere", async () => {
  const store = await open();
  for (const [round, member] of cluster.processes.entries()) {
    const key = recordOf(`stopped/${round}`).key;
    await member.pause();
    const error = await rejection(store.apply([writeOf(recordOf(key.name))]));
    if (error.kind !== "answered") expect(error).toMatchObject({ kind: "timeout", outcome: "unknown" });
    await writeSurely(store, key.name, 1n);
    await member.resume();
  }
});

it("the whole cluster stops: the holder learns it all the same, and its lease is taken over afterwards", async () => {
  const [holder, other] = [await connectLeases(0), await connectLeases(TEN_MINUTES_MS)];
  const lease = await holder.acquire("frozen", { ttl: 1_500 });
  await cluster.pause();
  await new Promise((resolve) => lease.signal.addEventListener("abort", resolve, { once: true }));
  expect(() => lease.assertHeld()).toThrow();
  await cluster.resume();
  const next = await other.acquire("frozen", { ttl: 30_000, wait: "2m" });
  expect(next.fence).toBeGreaterThan(lease.fence);
  await next.release();
});

it("without a majority nothing is written and one line says why; with it all is there again", async () => {
  const store = await open(4_000);
  const record = recordOf("majority");
  const version = await create(store, record);
  const [first, second] = cluster.processes as [EngineProcess, EngineProcess];
  await first.kill();
  await second.kill();
  const next = recordOf("majority", { generation: 2n });
  const alone = await until("the last member knows that it is alone", async () => {
    const error = await rejection(openEtcdStore({ url: storeUrl(cluster.urls, prefix), timeoutMs: 500 }));
    return error.message.includes("no leader") ? error : null;
  });
  expect(alone).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
  expect(alone.message).toMatch(/^[^\n]*start enough members for a majority[^\n]*$/);
  const refused = await until("a write is refused", async () => {
    const error = await rejection(store.apply([writeOf(next, version)]));
    return error.outcome === "not-applied" ? error : null;
  });
  expect(refused.kind).toBe("unreachable");
  await Promise.all([first.restart(), second.restart()]);
  await cluster.leader();
  const [stored] = (await store.read([record.key])).records;
  expect(stored).toMatchObject({ kind: "found", version, record: { nonce: record.nonce } });
  expect((await applyOne(store, writeOf(next, version))).kind).toBe("applied");
});

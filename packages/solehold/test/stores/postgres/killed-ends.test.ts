/**
 * An end that others saw before it was safe, and a server that is killed in just this moment: it is undone, and nobody
 * was told or given anything on the strength of it that is undone, too.
 *
 * Nothing of it is left to luck. The statement that confirms the end is held back on its way, and the server's own
 * process that writes the log by and by stands still; so the log behind the last acknowledged write lies in the memory
 * of processes that are then killed.
 */
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { LeaseHeldError, Leases } from "../../../src/client/index.ts";
import { fenceOf, type LeaseKey } from "../../../src/core/index.ts";
import { type Env, ManualEnv, realEnv } from "../../../src/env/index.ts";
import { StoreLeaseManager } from "../../../src/manager/index.ts";
import type { LeaseStore, StoredRecord } from "../../../src/store/index.ts";
import { tableNames } from "../../../src/stores/postgres/names.ts";
import { statementsFor } from "../../../src/stores/postgres/statements.ts";
import { ownServer } from "./own-server.ts";
import {
  applyOne,
  EVERYTHING,
  Events,
  eventually,
  isFreed,
  key,
  readOne,
  record,
  underWay,
} from "./support.ts";
import { startWire, type Wire } from "./wire.ts";

/** Longer than a restart takes on a busy machine. */
const PATIENCE_MS = 50_000;

// Whatever else could write the log down: nothing but a statement that waits for it is left.
const server = ownServer(["autovacuum=off", "bgwriter_lru_maxpages=0", "checkpoint_timeout=1d"]);

const wires: Wire[] = [];

// Before the stores are closed: a call that waits at a wire that is shut would keep them waiting, too.
afterEach(async () => {
  await Promise.all(wires.splice(0).map((wire) => wire.close()));
});

/** Parsed or bound, the confirming statement is named. */
const { confirm } = statementsFor(tableNames({}));
const isConfirmation = (message: Buffer): boolean => message.includes(confirm.name);

/** The server's own writer of the log stands still, with no lock in its hand: others can still write it. */
async function stopLogWriter(): Promise<void> {
  await eventually(async () => {
    const found = await server.admin.query(
      "select pid from pg_stat_activity where backend_type = 'walwriter'",
    );
    const pid: number | undefined = found.rows[0]?.pid;
    if (pid === undefined) return false;
    process.kill(pid, "SIGSTOP");
    await eventually(async () => /\) T /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
    const { rowCount } = await server.admin.query(
      "select from pg_stat_activity where backend_type = 'walwriter' and wait_event = 'WalWriterMain'",
    );
    if (rowCount === 1) return true;
    process.kill(pid, "SIGCONT");
    return false;
  });
}

async function logEnd(): Promise<string> {
  const { rows } = await server.admin.query("select pg_current_wal_insert_lsn()::text as place");
  return rows[0].place;
}

/** Whether anything behind that place has left the memory of the server. */
async function isWrittenBehind(place: string): Promise<boolean> {
  const { rows } = await server.admin.query("select pg_current_wal_lsn() > $1::pg_lsn as written", [place]);
  return rows[0].written;
}

async function killAndRestart(): Promise<void> {
  await server.engine.kill();
  await server.engine.restart();
}

async function others(): Promise<Leases> {
  return new Leases({ manager: new StoreLeaseManager({ store: await server.open() }), holder: "theirs" });
}

interface Scene {
  readonly job: LeaseKey;
  readonly wire: Wire;
  /** Of somebody who listens, and saw the lease held and then free. */
  readonly witness: LeaseStore;
  readonly held: StoredRecord;
  readonly free: StoredRecord;
  readonly fence: bigint;
  readonly releasing: ReturnType<typeof underWay>;
}

/** What was told with the news that it is free. A look would wait until it is safe. */
function toldIn({ seen }: Events): StoredRecord {
  for (const event of seen) {
    const stored = event.kind === "changed" && event.held === "no" ? event.stored?.() : null;
    if (stored !== null && stored !== undefined) return stored;
  }
  throw new Error("the end was not told with its news");
}

/** A lease whose end was told and seen, and is neither safe nor answered. */
async function endInTheAir(
  name: string,
  { ttlMs = 600_000, env = realEnv }: { readonly ttlMs?: number; readonly env?: Env } = {},
): Promise<Scene> {
  const job = key(name);
  const wire = await startWire(server.url, { holds: isConfirmation });
  wires.push(wire);
  const witness = await server.open();
  const heard = new Events();
  await witness.watch?.({ ...EVERYTHING, wants: "holding" }, heard.listener);
  const store = await server.open({ url: wire.url, env, timeoutMs: PATIENCE_MS });
  const mine = new StoreLeaseManager({ store, env, callTimeoutMs: PATIENCE_MS });
  const holder = "mine";
  await stopLogWriter();
  const granted = await mine.acquire({ key: job, holder, ttlMs });
  if (granted.kind !== "applied") throw new Error(granted.kind);
  const held = await readOne(witness, job);
  const place = await logEnd();
  const { token } = granted;
  const releasing = underWay(mine.release({ key: job, holder, token, timeoutMs: PATIENCE_MS }));
  await heard.until(() => isFreed(heard));
  const free = toldIn(heard);
  expect(free).toMatchObject({ kind: "found", record: { state: "released", holder } });
  expect(await isWrittenBehind(place)).toBe(false);
  expect(releasing.isOver()).toBe(false);
  const { term, generation } = granted.decision.lease;
  return { job, wire, witness, held, free, fence: fenceOf(term, generation), releasing };
}

describe("an end that was seen before it was safe, and a server that is killed", () => {
  it("is undone: the lease is held as before, is given to nobody, and its own client gives it back once more", async () => {
    const { job, wire, witness, held, free, fence, releasing } = await endInTheAir("given back");
    wire.shut();
    await killAndRestart();
    expect(await readOne(await server.open(), job)).toEqual(held);
    // Who was told of the end comes with what it was told.
    if (free.kind !== "found") throw new Error(free.kind);
    const grant = record(job, { holder: "theirs", generation: 2n });
    const upon = await eventually(() =>
      applyOne(witness, job, free.version, grant, free.record).catch(() => null),
    );
    expect(upon).toEqual({ kind: "conflict", current: held });
    const theirs = await others();
    await expect(theirs.acquire(job.name, { wait: 0 })).rejects.toBeInstanceOf(LeaseHeldError);
    expect(releasing.isOver()).toBe(false);
    await stopLogWriter();
    wire.open();
    expect(await releasing.how).toMatchObject({
      kind: "applied",
      decision: { lease: { state: "released" } },
    });
    await killAndRestart();
    expect(await readOne(await server.open(), job)).toMatchObject({ record: { state: "released" } });
    const next = await (await others()).acquire(job.name);
    expect(next.fence).toBeGreaterThan(fence);
    await next.release();
  });

  it("is undone: without its own client the lease is held until it runs out", async () => {
    const env = new ManualEnv();
    const { job, wire, held, fence, releasing } = await endInTheAir("run out", { ttlMs: 5_000, env });
    wire.shut();
    await killAndRestart();
    expect(await readOne(await server.open(), job)).toEqual(held);
    await eventually(async () => {
      await env.advance(1_000);
      return releasing.isOver();
    });
    expect(await releasing.how).toMatchObject({ kind: "unsettled", outcome: "unknown" });
    wire.cut();
    const next = await (await others()).acquire(job.name, { wait: "50s" });
    expect(next.fence).toBeGreaterThan(fence);
    const granted = await readOne(await server.open(), job);
    if (held.kind !== "found" || granted.kind !== "found") throw new Error("both were found before");
    expect(granted.record).toMatchObject({ holder: "theirs", generation: held.record.generation + 1n });
    expect(granted.record.grantedAtMs).toBeGreaterThanOrEqual(held.record.expiresAtMs);
    await next.release();
  });

  it("stays if somebody was granted the lease upon it: that grant was answered, and stands", async () => {
    const { job, wire, fence, releasing } = await endInTheAir("built upon");
    const lease = await (await others()).acquire(job.name, { ttl: "10m" });
    expect(lease.fence).toBeGreaterThan(fence);
    const granted = await readOne(await server.open(), job);
    wire.shut();
    await killAndRestart();
    const found = await readOne(await server.open(), job);
    expect(found).toMatchObject({ record: { state: "held", holder: "theirs" } });
    expect(found).toEqual(granted);
    wire.open();
    // The first holder is told that it holds nothing any more, and what the second one holds is left alone.
    expect(await releasing.how).toMatchObject({
      kind: "refused",
      decision: { reason: "LEASE_HELD_BY_OTHER", heldBy: "theirs" },
    });
    expect(await readOne(await server.open(), job)).toEqual(granted);
    expect(lease.isHeld()).toBe(true);
    expect(await lease.release()).toMatchObject({ released: true });
  });

  it("is there if its own client was told of it", async () => {
    const { job, wire, free, releasing } = await endInTheAir("told");
    wire.letGo();
    expect(await releasing.how).toMatchObject({ kind: "applied" });
    await killAndRestart();
    expect(await readOne(await server.open(), job)).toEqual(free);
  });

  it("is there if its own client got no answer, looked, and was told of it", async () => {
    const { job, wire, free, releasing } = await endInTheAir("looked for");
    wire.cut();
    expect(await releasing.how).toMatchObject({ kind: "applied" });
    await killAndRestart();
    expect(await readOne(await server.open(), job)).toEqual(free);
  });
});

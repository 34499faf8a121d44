/** The handler for pg-boss with pg-boss itself, on PostgreSQL. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { singletonHandler } from "../../src/adapters/pg-boss.ts";
import { connect, type Leases } from "../../src/index.ts";
import { ownDatabase } from "../guards/sql-clients.ts";
import { latch } from "./latch.ts";
import { PgBoss } from "./packages/pg-boss.ts";

const POLLING = { pollingIntervalSeconds: 0.5 };

let boss: PgBoss;
let leases: Leases;
let drop: () => Promise<void> = async () => undefined;
let name: string;

beforeAll(async () => {
  const database = await ownDatabase("postgres", `boss_${randomBytes(6).toString("hex")}`);
  drop = database.drop;
  boss = new PgBoss({ connectionString: database.url, supervise: false, schedule: false });
  await boss.start();
  leases = await connect(database.url);
});

afterAll(async () => {
  await boss?.stop({ graceful: false, wait: true });
  await leases?.close();
  await drop();
});

beforeEach(async () => {
  name = `reports-${randomBytes(6).toString("hex")}`;
  await boss.createQueue(name);
});

afterEach(async () => {
  await boss.offWork(name);
});

it("keeps the second run of a job out while the first still runs, although pg-boss gave up on it", async () => {
  const steps: string[] = [];
  const [waiting, finish, done] = [latch(), latch(), latch()];
  const handler = singletonHandler(
    leases,
    { name, onWaiting: () => waiting.open() },
    async (_jobs, { lease }) => {
      const run = steps.length === 0 ? "first" : "second";
      steps.push(`begin ${run}`);
      if (run === "first") await finish.opened;
      // Without a lease it begins while the first is inside.
      else waiting.open();
      lease.assertHeld();
      steps.push(`end ${run}`);
      if (run === "second") done.open();
    },
  );
  await boss.work(name, POLLING, handler);
  await boss.work(name, POLLING, handler);
  await boss.send(name, { report: 1 }, { expireInSeconds: 1, retryLimit: 1 });
  await waiting.opened;
  expect(steps).toEqual(["begin first"]);
  finish.open();
  await done.opened;
  expect(steps).toEqual(["begin first", "end first", "begin second", "end second"]);
});

it("aborts with the lease and fails the job, whose output says why; pg-boss repeats it with a newer fence", async () => {
  const fences: bigint[] = [];
  const [began, repeated] = [latch(), latch()];
  await boss.work(
    name,
    POLLING,
    singletonHandler(leases, { name, ttl: "6s" }, async (_jobs: unknown[], { lease, signal }) => {
      fences.push(lease.fence);
      if (fences.length > 1) return repeated.open();
      began.open();
      await once(signal, "abort");
    }),
  );
  const id = (await boss.send(name, { report: 1 }, { retryLimit: 1, retryDelay: 1 })) ?? "";
  await began.opened;
  await leases.revoke(name);
  await expect
    .poll(async () => (await boss.getJobById(name, id))?.output)
    .toMatchObject({
      ...{ code: "LEASE_LOST", fence: String(fences[0]) },
    });
  await repeated.opened;
  expect(fences[1]).toBeGreaterThan(fences[0] ?? 0n);
});

it("fails a job that does not get the lease in time, with who has it", async () => {
  const held = await leases.acquire(name);
  const failed = latch();
  const handler = singletonHandler(leases, { name, wait: 0 }, async () => undefined);
  await boss.work(name, POLLING, async (jobs) => {
    try {
      await handler(jobs);
    } catch (error) {
      failed.open();
      throw error;
    }
  });
  const id = (await boss.send(name, { report: 1 }, { retryLimit: 0 })) ?? "";
  await failed.opened;
  await expect
    .poll(async () => (await boss.getJobById(name, id))?.output)
    .toMatchObject({ code: "LEASE_HELD", holder: leases.holder });
  await held.release();
});

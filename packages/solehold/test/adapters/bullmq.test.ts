/** The processor for BullMQ with BullMQ itself, on Redis. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { afterEach, beforeEach, expect, it } from "vitest";
import { singletonProcessor } from "../../src/adapters/bullmq.ts";
import { connect, type Leases } from "../../src/index.ts";
import { engine } from "../engines/index.ts";
import { latch } from "./latch.ts";
import { type Job, Queue, Worker } from "./packages/bullmq.ts";

type Process = NonNullable<ConstructorParameters<typeof Worker<string, string>>[1]>;

let leases: Leases;
let name: string;
let queue: Queue<string, string>;
const workers: Worker[] = [];

const connection = () => ({ url: engine("redis"), maxRetriesPerRequest: null });

function work(process: Process): Worker<string, string> {
  const worker = new Worker<string, string>(name, process, { connection: connection() });
  workers.push(worker);
  return worker;
}

beforeEach(async () => {
  name = `reports-${randomBytes(6).toString("hex")}`;
  leases = await connect(engine("redis"));
  queue = new Queue(name, { connection: connection() });
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await queue.obliterate({ force: true });
  await queue.close();
  await leases.close({ release: true });
});

it("runs one job at a time over two workers", async () => {
  const steps: string[] = [];
  const [waiting, finish] = [latch(), latch()];
  const process = singletonProcessor(
    leases,
    { name, wait: "forever", onWaiting: () => waiting.open() },
    async ({ data }: Job<string>, { lease }) => {
      steps.push(`begin ${data}`);
      if (steps.length === 1) await finish.opened;
      // Without a lease the other begins while this one is inside.
      else waiting.open();
      lease.assertHeld();
      steps.push(`end ${data}`);
      return String(lease.fence);
    },
  );
  const fences: bigint[] = [];
  // A slow worker may find nothing left to do: either of them completes whatever job it gets.
  for (const worker of [work(process), work(process)])
    worker.on("completed", (_job, fence) => fences.push(BigInt(fence)));
  await queue.addBulk(["a", "b"].map((data) => ({ name: "job", data })));
  await waiting.opened;
  const begun = [...steps];
  finish.open();
  expect(begun).toHaveLength(1);
  await expect.poll(() => fences.length).toBe(2);
  const inTurn = (names: string) => [...names].flatMap((name) => [`begin ${name}`, `end ${name}`]);
  // Which of the two workers comes first is not said.
  expect(steps).toEqual(inTurn(begun[0] === "begin a" ? "ab" : "ba"));
  expect(new Set(fences).size).toBe(2);
});

it("aborts with the lease, fails the job, and BullMQ repeats it with a newer fence", async () => {
  const fences: bigint[] = [];
  const began = latch();
  const worker = work(
    singletonProcessor(leases, { name, ttl: "6s" }, async (_job, { lease, signal }) => {
      fences.push(lease.fence);
      if (fences.length > 1) return "repeated";
      began.open();
      await once(signal, "abort");
      return "as if nothing had happened";
    }),
  );
  const failed = once(worker, "failed");
  const completed = once(worker, "completed");
  await queue.add("job", "it", { attempts: 2 });
  await began.opened;
  await leases.revoke(name);
  const [, error] = await failed;
  expect(error).toMatchObject({ code: "LEASE_LOST" });
  expect((await completed)[1]).toBe("repeated");
  expect(fences[1]).toBeGreaterThan(fences[0] ?? 0n);
});

it("puts a job back that finds the lease taken, and uses up none of its attempts", async () => {
  const held = await leases.acquire(name);
  const delayed = latch();
  const process = singletonProcessor(leases, { name, wait: 0 }, async () => "done");
  const worker = work(async (job, token, signal) => {
    try {
      return await process(job, token, signal);
    } catch (error) {
      delayed.open();
      throw error;
    }
  });
  const completed = once(worker, "completed");
  const job = await queue.add("job", "it", { attempts: 1 });
  await delayed.opened;
  expect(await job.getState()).toBe("delayed");
  await held.release();
  const [done] = await completed;
  expect([done.returnvalue, done.attemptsMade]).toEqual(["done", 1]);
});

it("stops when BullMQ cancels the job", async () => {
  const began = latch();
  const worker = work(
    singletonProcessor(leases, { name }, async (_job, { signal }) => {
      began.open();
      await once(signal, "abort");
      throw new Error(`stopped: ${signal.reason}`);
    }),
  );
  const failed = once(worker, "failed");
  const { id = "" } = await queue.add("job", "it");
  await began.opened;
  expect(worker.cancelJob(id, "enough")).toBe(true);
  expect((await failed)[1].message).toBe("stopped: enough");
  expect((await leases.tryAcquire(name)).ok).toBe(true);
});

it("leaves a lease that the work itself does not get to the work", async () => {
  const other = await leases.acquire(`${name}/other`);
  const worker = work(
    singletonProcessor(leases, { name }, async () =>
      leases.run(other.name, { wait: 0 }, async () => "never"),
    ),
  );
  const failed = once(worker, "failed");
  await queue.add("job", "it");
  expect((await failed)[1]).toMatchObject({ code: "LEASE_HELD" });
});

it("says what is wrong when it is set up", () => {
  const nothing = async () => undefined;
  expect(() => singletonProcessor(leases, {} as { name: string }, nothing)).toThrow(/name must be/);
  expect(() => singletonProcessor(undefined as never, { name }, nothing)).toThrow(/await connect\(url\)/);
  expect(() => singletonProcessor(leases, { name }, undefined as never)).toThrow(/a function/);
});

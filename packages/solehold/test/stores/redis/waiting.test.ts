/** Waiting for leases on Redis: processes that wait for one key are served in turn. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { type Lease, Leases } from "../../../src/client/index.ts";
import { StoreExecutor } from "../../../src/executor/index.ts";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { until } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;
const opened: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});

afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

async function leases(holder: string, url = server.url): Promise<Leases> {
  const store = await openRedisStore({ url });
  const own = new Leases({ executor: new StoreExecutor({ store }), holder });
  opened.push(own);
  return own;
}

const waitingProcesses = async (): Promise<number> => (await admin.keys("{solehold:}default/$wait/*")).length;

it("is served in turn, and every fence is above the one before", async () => {
  const clients = await Promise.all(Array.from({ length: 12 }, (_, index) => leases(`process ${index}`)));
  const served: number[] = Array(clients.length).fill(0);
  const order: number[] = [];
  let fence = 0n;
  await Promise.all(
    clients.map(async (client, index) => {
      for (let turn = 0; turn < 10; turn += 1) {
        const lease = await client.acquire("crowd", { wait: "1m" });
        expect(lease.fence).toBeGreaterThan(fence);
        fence = lease.fence;
        served[index] = (served[index] ?? 0) + 1;
        order.push(index);
        await lease.release();
      }
    }),
  );
  expect(served).toEqual(Array(clients.length).fill(10));
  // Once all wait, everybody has had a turn before anybody has the next.
  const rounds = order.slice(24, 96);
  for (let start = 0; start + 12 <= rounds.length; start += 12) {
    expect(new Set(rounds.slice(start, start + 12)).size).toBeGreaterThanOrEqual(10);
  }
});

it("lets a successor have what was handed to it, wherever it is in the queue", async () => {
  const [holder, other, successor] = await Promise.all(
    ["holder", "other", "successor"].map((name) => leases(name)),
  );
  const lease = await holder!.acquire("handed", { ttl: 20_000 });
  const stop = new AbortController();
  const inVain = other!.acquire("handed", { wait: "1m", signal: stop.signal }).catch(() => "stopped");
  await until("the other waits", async () => ((await waitingProcesses()) === 1 ? true : null));
  const waiting = successor!.acquire("handed", { wait: "1m" });
  await until("both wait", async () => ((await waitingProcesses()) === 2 ? true : null));
  await admin.config("RESETSTAT");
  await lease.handOff("successor", { withinMs: 15_000 });
  const granted = await waiting;
  expect(granted.holder).toBe("successor");
  // The other one was denied, and does not ask over and over.
  const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await admin.info("commandstats")) ?? [];
  expect(Number(calls)).toBeLessThan(20);
  await granted.release();
  stop.abort();
  const last = await inVain;
  if (last !== "stopped") await (last as Lease).release();
});

it("waits with no right but to the channel of changes", async () => {
  const rules = [
    "on",
    ">lease",
    "resetkeys",
    "~{solehold:}*",
    "resetchannels",
    "&{solehold:}changed",
    "+@all",
  ];
  await admin.call("ACL", "SETUSER", "narrow", ...rules);
  const url = server.url.replace("redis://", "redis://narrow:lease@");
  const [holder, waiter] = await Promise.all([leases("holder", url), leases("waiter", url)]);
  const lease = await holder.acquire("narrow");
  const waiting = waiter.acquire("narrow", { wait: "1m" });
  await until("it listens", async () => {
    const [, count] = (await admin.call("PUBSUB", "NUMSUB", "{solehold:}changed")) as [string, number];
    return count === 1 ? true : null;
  });
  expect(await lease.release()).toMatchObject({ released: true });
  await using granted = await waiting;
  expect(granted.state).toBe("held");
});

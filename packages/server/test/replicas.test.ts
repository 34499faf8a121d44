// Three server processes over one shared store, under load: one is killed, one is stopped and continued.
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { connect, type Lease, type Leases } from "solehold";
import { HttpTransport, Leases as LeasesOver, RemoteExecutor, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { startPostgres, startRedis } from "../../solehold/test/engines/index.ts";
import { ask, tempFolder } from "./support/server.ts";

const SOLEHOLD = join(import.meta.dirname, "../../cli/bin/solehold.js");

interface ReplicaProcess {
  readonly url: string;
  readonly child: ChildProcess;
}

async function startReplica(store: string, nodeId: string): Promise<ReplicaProcess> {
  const dataDir = await tempFolder();
  const child = spawn(
    process.execPath,
    [
      SOLEHOLD,
      "serve",
      "--port",
      "0",
      "--store",
      store,
      "--data-dir",
      dataDir,
      "--node-id",
      nodeId,
      "--audit",
      "memory",
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
  });
  const stdout = child.stdout;
  if (stdout === null) throw new Error("no output");
  for await (const line of createInterface({ input: stdout })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url !== undefined) {
      stdout.resume();
      return { url, child };
    }
  }
  throw new Error(`${nodeId} ended before it listened`);
}

async function startReplicas(store: string): Promise<readonly ReplicaProcess[]> {
  const replicas = await Promise.all(["a", "b", "c"].map((nodeId) => startReplica(store, nodeId)));
  const [first] = replicas;
  await until(async () => (await members(first?.url ?? "")).length === 3);
  return replicas;
}

async function members(url: string): Promise<readonly { nodeId: string }[]> {
  return (await ask(`${url}/v1/replicas`, {})).body.replicas;
}

async function conflictsOf(replicas: readonly ReplicaProcess[]): Promise<number> {
  const counts = await Promise.all(
    replicas.map(async ({ url }) => {
      const { text } = await ask(`${url}/metrics`, {});
      return Number(/^solehold_store_conflicts_total (\d+)/m.exec(text)?.[1] ?? 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Several clients on few keys; every entry checks that nobody else is inside and that the fence grew. */
class Contenders {
  readonly #inside = new Map<string, string>();
  readonly #newest = new Map<string, bigint>();
  readonly problems: string[] = [];
  served = 0;

  async enter(lease: Lease, name: string): Promise<void> {
    const other = this.#inside.get(name);
    if (other !== undefined) this.problems.push(`${lease.holder} entered ${name} while ${other} was inside`);
    const newest = this.#newest.get(name) ?? 0n;
    if (lease.fence <= newest) this.problems.push(`${name}: fence ${lease.fence} after ${newest}`);
    this.#inside.set(name, lease.holder);
    this.#newest.set(name, lease.fence);
    await new Promise((resolve) => setImmediate(resolve));
    this.#inside.delete(name);
    this.served += 1;
  }

  async run(clients: readonly Leases[], keys: readonly string[], turns: number): Promise<void> {
    await Promise.all(
      clients.map(async (leases) => {
        for (let turn = 0; turn < turns; turn += 1) {
          const name = keys[turn % keys.length] ?? "key";
          await leases.run(name, { ttl: "3s", wait: "60s" }, (lease) => this.enter(lease, name));
        }
      }),
    );
  }
}

const KEYS = ["alpha", "beta", "gamma"];

describe.each([
  ["redis", () => startRedis()],
  ["postgres", () => startPostgres()],
] as const)("three replicas on %s", (_name, start) => {
  it("keep one holder, growing fences and every waiter while one is killed and one is stopped and continued", async () => {
    const engine = await start();
    onTestFinished(async () => await engine.stop());
    const replicas = await startReplicas(engine.url);
    const [a, b, c] = replicas;
    if (a === undefined || b === undefined || c === undefined) throw new Error("three");
    const address = replicas.map(({ url }) => url).join(",");
    const clients = await Promise.all(
      Array.from({ length: 6 }, async (_, index) => {
        const leases = await connect(address, { holder: `client-${index}` });
        onTestFinished(async () => await leases.close());
        return leases;
      }),
    );
    const contenders = new Contenders();
    const load = contenders.run(clients, KEYS, 30);
    await until(async () => contenders.served >= 20);
    a.child.kill("SIGKILL");
    await until(async () => contenders.served >= 60);
    b.child.kill("SIGSTOP");
    await until(async () => contenders.served >= 90);
    b.child.kill("SIGCONT");
    await load;
    expect(contenders.problems).toEqual([]);
    expect(contenders.served).toBe(180);
    await until(async () => (await members(c.url)).every(({ nodeId }) => nodeId !== "a"));
  });

  it("collide at least ten times less often with homes than with random routing", async () => {
    const engine = await start();
    onTestFinished(async () => await engine.stop());
    const replicas = await startReplicas(engine.url);
    const address = replicas.map(({ url }) => url).join(",");
    const homed = await Promise.all(
      Array.from({ length: 9 }, (_, index) => connect(address, { holder: `h${index}` })),
    );
    const scattered = Array.from({ length: 9 }, (_, index) => {
      const url = new URL(replicas[index % replicas.length]?.url ?? "");
      const executor = new RemoteExecutor({
        transport: new HttpTransport({ url, env: realEnv }),
        env: realEnv,
      });
      return new LeasesOver({ executor, env: realEnv, holder: `s${index}` });
    });
    onTestFinished(async () => {
      await Promise.all([...homed, ...scattered].map((leases) => leases.close()));
    });
    const conflicts = { homed: 0, scattered: 0 };
    // Waiters of all replicas take turns, so conflicts are rare: as many rounds as it takes to have some to compare.
    for (let round = 0; conflicts.scattered <= 10 && round < 20; round += 1) {
      const before = await conflictsOf(replicas);
      await new Contenders().run(homed, ["home/alpha", "home/beta"], 40);
      const between = await conflictsOf(replicas);
      await new Contenders().run(scattered, ["any/alpha", "any/beta"], 40);
      conflicts.homed += between - before;
      conflicts.scattered += (await conflictsOf(replicas)) - between;
    }
    expect(conflicts.scattered).toBeGreaterThan(10);
    expect(conflicts.homed * 10).toBeLessThanOrEqual(conflicts.scattered);
  });
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await condition().catch(() => false))) {
    if (Date.now() > deadline) throw new Error("it did not come about");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

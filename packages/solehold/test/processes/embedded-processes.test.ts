// Real processes on one embedded store, stopped, continued and killed at random.
import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openExecutor } from "../../src/client/connect.ts";
import { FencedResource } from "../../src/guards/fenced-resource.ts";
import { StaleFenceError } from "../../src/guards/stale-fence-error.ts";

const KEY = { tenant: "default", name: "counter" };
const here = import.meta.dirname;
let folder: string;
const children = new Set<ChildProcess>();

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "solehold-processes-")), "data");
});

afterEach(async () => {
  await Promise.all([...children].map(kill));
  rmSync(join(folder, ".."), { recursive: true, force: true });
});

function kill(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGKILL");
  });
}

interface Question {
  readonly id: number;
  readonly kind: "granted" | "read" | "write";
  readonly fence: string;
  readonly value: number;
}

/** What the processes fight for: the counter and everything that was accepted or refused. */
class GuardedCounter {
  readonly resource = new FencedResource(0);
  readonly grants: bigint[] = [];
  accepted = 0;
  refused = 0;

  answer(question: Question): { ok: boolean; value: number } {
    const by = { key: KEY, fence: BigInt(question.fence) };
    if (question.kind === "granted") {
      this.grants.push(by.fence);
      return { ok: true, value: 0 };
    }
    try {
      // Reading announces the fence as well: from then on no older writer can slip in between.
      const value = this.resource.write(by, (state) => (question.kind === "write" ? question.value : state));
      if (question.kind === "write") this.accepted += 1;
      return { ok: true, value };
    } catch (error) {
      if (!(error instanceof StaleFenceError)) throw error;
      this.refused += 1;
      return { ok: false, value: 0 };
    }
  }
}

const WRITES = process.env.SOLEHOLD_EFFORT === "full" ? 400 : 200;

describe("eight processes on one embedded store", () => {
  it("under random SIGSTOP, SIGCONT and SIGKILL lose no update and accept no write with an older fence", async () => {
    const counter = new GuardedCounter();
    let started = 0;
    const start = (): ChildProcess => {
      started += 1;
      const child = fork(join(here, "counting-worker.mjs"), [folder, `worker-${started}`], {
        // Workers run the build, as users do; the test runner's own flags would send them to the sources.
        execArgv: [],
        stdio: "inherit",
      });
      children.add(child);
      child.on("message", (message) => {
        const question = message as Question;
        const answer = counter.answer(question);
        if (child.connected) child.send({ id: question.id, answer }, () => undefined);
        onProgress();
      });
      return child;
    };
    let onProgress: () => void = () => undefined;
    const workers = Array.from({ length: 8 }, start);
    const [stops, kills] = [{ count: 0 }, { count: 0 }];
    // One disturbance after every few accepted writes, so that chaos and progress keep step.
    await new Promise<void>((resolve) => {
      let nextDisturbance = 5;
      onProgress = () => {
        if (counter.accepted >= WRITES) return resolve();
        if (counter.accepted < nextDisturbance) return;
        nextDisturbance = counter.accepted + 5;
        const index = Math.floor(Math.random() * workers.length);
        const victim = workers[index];
        if (victim === undefined) return;
        if (Math.random() < 0.3) {
          kills.count += 1;
          void kill(victim);
          workers[index] = start();
          return;
        }
        stops.count += 1;
        victim.kill("SIGSTOP");
        // Longer than the ttl for some, shorter for others.
        setTimeout(() => victim.kill("SIGCONT"), 50 + Math.random() * 900);
      };
    });
    expect(counter.resource.state).toBe(counter.accepted);
    expect(new Set(counter.grants).size).toBe(counter.grants.length);
    expect(kills.count + stops.count).toBeGreaterThan(20);
  });
});

describe("a process killed in the middle of a write load, fifty times", () => {
  it("leaves every acknowledged grant in the store, and none was given twice", async () => {
    const acknowledged = new Map<string, string>();
    let granted = 0;
    for (let round = 0; round < 50; round += 1) {
      const child = spawn(process.execPath, [join(here, "granting-worker.mjs"), folder, String(round)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      children.add(child);
      const wanted = 1 + Math.floor(Math.random() * 60);
      let seen = 0;
      for await (const line of createInterface({ input: child.stdout })) {
        const { name, generation, token } = JSON.parse(line) as Record<string, string>;
        const grant = `${name}@${generation}`;
        expect(acknowledged.has(grant), `${grant} was granted twice`).toBe(false);
        acknowledged.set(grant, token ?? "");
        granted += 1;
        seen += 1;
        if (seen === wanted) child.kill("SIGKILL");
      }
      await kill(child);
    }
    const executor = await openExecutor(`embedded:${folder}`);
    for (const [grant, token] of acknowledged) {
      const [name = "", generation = ""] = grant.split("@");
      const lease = await executor.read({ tenant: "default", name });
      expect(lease, `${grant} is in the store`).not.toBeNull();
      expect(lease?.generation).toBeGreaterThanOrEqual(BigInt(generation));
      // A key that was used once still belongs to the token that was acknowledged.
      if (name !== "shared") {
        const { holder } = lease ?? { holder: "" };
        const renewed = await executor.execute({
          op: "renew",
          key: { tenant: "default", name },
          holder,
          token,
          ttlMs: 600_000,
        });
        expect(renewed.kind).toBe("applied");
      }
    }
    await executor.close();
    expect(granted).toBeGreaterThan(50);
  });
});

/** Real processes that take one lease in turns and are killed at any moment, also while they hold it. */
import { ok } from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { acquireInTheEnd, executorOn, shortTtlMs } from "./lease-fixture.ts";
import type { KitReport, KitTask } from "./process-worker.ts";
import { type BenchCase, nth, type StoreBench } from "./store-fixture.ts";

const PROCESSES = 3;
const GRANTS_PER_KILL = 4;

interface SeenGrant {
  readonly fence: bigint;
  readonly holder: string;
  readonly fromMs: number;
  /** The end of its belief, or earlier: when it was released, or its process was gone. */
  untilMs: number;
}

/** The processes of one case, and all that they reported. */
class Crew {
  readonly grants: SeenGrant[] = [];
  readonly #bench: StoreBench;
  readonly #ttlMs: number;
  readonly #children = new Map<ChildProcess, string>();
  #started = 0;
  /** After this nobody is started any more, whatever was planned. */
  #ended = false;
  #onGrant: (child: ChildProcess) => void = () => undefined;
  #onFailure: (error: Error) => void = () => undefined;

  constructor(bench: StoreBench, ttlMs: number) {
    this.#bench = bench;
    this.#ttlMs = ttlMs;
  }

  start(): void {
    const source = this.#bench.child();
    this.#started += 1;
    const holder = `process-${this.#started}`;
    const child = fork(source.module, [...(source.args ?? [])], {
      env: { ...process.env, ...source.env },
      execArgv: [],
    });
    this.#children.set(child, holder);
    child.on("message", (report) => this.#onReport(child, holder, report as KitReport));
    child.on("error", (error) => this.#onFailure(error));
    child.on("exit", (_code, signal) => {
      if (signal !== "SIGKILL") this.#onFailure(new Error(`${holder} ended by itself`));
    });
    const { tenant } = this.#bench;
    child.send({ tenant, name: "lease", holder, ttlMs: this.#ttlMs } satisfies KitTask);
  }

  /** Kills the holder of every few grants right after it reported it, and starts another; resolves after `kills`. */
  async killHolders(kills: number): Promise<void> {
    let killed = 0;
    await new Promise<void>((resolve, reject) => {
      this.#onFailure = reject;
      this.#onGrant = (child) => {
        if (this.grants.length % GRANTS_PER_KILL !== 0 || killed === kills) return;
        killed += 1;
        // At any moment of its turn: while it holds, while it releases, while it asks again.
        this.#bench.env.timer(this.#bench.env.random() * 12, () => {
          this.#kill(child).then(() => {
            if (killed === kills) resolve();
            else if (!this.#ended) this.start();
          }, reject);
        });
      };
    });
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#onGrant = () => undefined;
    await Promise.all([...this.#children.keys()].map((child) => this.#kill(child)));
  }

  async #kill(child: ChildProcess): Promise<void> {
    const holder = this.#children.get(child);
    // Somebody else is at it.
    if (!this.#children.delete(child)) return;
    if (child.exitCode === null && child.signalCode === null) {
      // With the end of its channel all its reports have arrived.
      const gone = Promise.all([once(child, "exit"), once(child, "disconnect")]);
      child.kill("SIGKILL");
      await gone;
    }
    const nowMs = this.#bench.env.monotonicMs();
    for (const grant of this.grants) {
      if (grant.holder === holder) grant.untilMs = Math.min(grant.untilMs, nowMs);
    }
  }

  #onReport(child: ChildProcess, holder: string, report: KitReport): void {
    if (report.kind === "failed") {
      this.#onFailure(new Error(`${holder}: ${report.message}`));
      return;
    }
    const fence = BigInt(report.fence);
    if (report.kind === "granted") {
      this.grants.push({ fence, holder, fromMs: report.fromMs, untilMs: report.untilMs });
      this.#onGrant(child);
      return;
    }
    const grant = this.grants.find((each) => each.fence === fence);
    if (grant !== undefined) grant.untilMs = Math.min(grant.untilMs, report.atMs);
  }
}

/** The highest fence. */
function claimOneAfterTheOther(grants: readonly SeenGrant[]): bigint {
  const inOrder = [...grants].sort((a, b) => (a.fence < b.fence ? -1 : 1));
  for (const [index, next] of inOrder.entries()) {
    if (index === 0) continue;
    const last = nth(inOrder, index - 1);
    ok(next.fence > last.fence, `fence ${next.fence} was handed to ${last.holder} and to ${next.holder}`);
    const overlapMs = last.untilMs - next.fromMs;
    ok(overlapMs <= 0, `${last.holder} and ${next.holder} both held the lease for ${overlapMs} ms`);
  }
  return nth(inOrder, inOrder.length - 1).fence;
}

export const processCases: readonly BenchCase[] = [
  {
    title: "processes that are killed while they take turns never hold at once, share a fence or lose one",
    needs: "child",
    run: async (bench) => {
      const store = await bench.open();
      const crew = new Crew(bench, shortTtlMs(store));
      try {
        for (let count = 0; count < PROCESSES; count += 1) crew.start();
        await bench.inTime("the processes' turns", crew.killHolders(bench.amount(4, 2)));
      } finally {
        await crew.end();
      }
      const highest = claimOneAfterTheOther(crew.grants);
      const next = await acquireInTheEnd(bench, executorOn(bench, store), "survivor", 30_000);
      ok(next.fence > highest, `fence ${next.fence} follows ${highest}, which a killed process was given`);
    },
  },
];

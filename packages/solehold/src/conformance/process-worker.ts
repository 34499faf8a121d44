/**
 * The child's side of the cases with processes. A module of yours that the kit can start with node calls
 * `runKitProcess(open)`; from then on the process takes and releases one lease, over and over, and reports
 * the kit of each, until it is killed.
 */
import { recordFence, validityFrom } from "../core/index.ts";
import { delay, realEnv } from "../env/index.ts";
import { StoreExecutor } from "../executor/index.ts";
import type { LeaseStore } from "../store/index.ts";

/** What the kit sends once. */
export interface KitTask {
  readonly tenant: string;
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
}

/** What the process tells. Instants are of the monotonic clock that the processes of a machine share. */
export type KitReport =
  /** A grant arrived: from here to `untilMs` this process may act on it. */
  | { readonly kind: "granted"; readonly fence: string; readonly fromMs: number; readonly untilMs: number }
  /** From here on it does not. Told before the store is asked. */
  | { readonly kind: "released"; readonly fence: string; readonly atMs: number }
  | { readonly kind: "failed"; readonly message: string };

const PAUSE_MS = 5;

export async function runKitProcess(open: () => Promise<LeaseStore>): Promise<void> {
  try {
    const task = await firstMessage();
    await work(new StoreExecutor({ store: await open() }), task);
  } catch (error) {
    report({ kind: "failed", message: String(error) });
  }
}

/** Without a parent nobody would ever end this process: it then ends itself. */
function firstMessage(): Promise<KitTask> {
  process.once("disconnect", () => process.exit(1));
  return new Promise((resolve) => process.once("message", (task) => resolve(task as KitTask)));
}

async function work(executor: StoreExecutor, task: KitTask): Promise<never> {
  const { tenant, name, holder, ttlMs } = task;
  const key = { tenant, name };
  for (;;) {
    const outcome = await executor.execute({ op: "acquire", key, holder, ttlMs });
    if (outcome.kind === "applied") {
      const fence = String(recordFence(outcome.decision.lease));
      const { monotonicEndMs } = validityFrom(outcome.believedFrom, outcome.validForMs, executor.drift);
      report({ kind: "granted", fence, fromMs: realEnv.monotonicMs(), untilMs: monotonicEndMs });
      await delay(realEnv, PAUSE_MS);
      report({ kind: "released", fence, atMs: realEnv.monotonicMs() });
      await executor.execute({ op: "release", key, holder, token: outcome.token });
    }
    await delay(realEnv, PAUSE_MS * (1 + realEnv.random()));
  }
}

function report(event: KitReport): void {
  process.send?.(event);
}

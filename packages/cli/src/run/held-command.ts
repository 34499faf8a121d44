/**
 * A command under a lease: feeds the keeper with deadlines while the lease is renewed, tells it when the
 * lease is lost, passes the user's signals on, and gives the lease back once the command is really gone.
 */
import {
  type Env,
  type Lease,
  type LeaseExecutor,
  type LossReason,
  realEnv,
  recordFence,
  type StoredRecord,
  type StoreEvent,
  type StoreWatch,
} from "solehold";
import type { Io } from "../io.ts";
import { type Deadline, deadlineOf } from "./deadline.ts";
import type { StopCause } from "./guard.ts";
import { KeeperHandle, type KeeperResult } from "./keeper-handle.ts";
import type { StopPlan } from "./plan.ts";

export interface HeldCommandOptions {
  readonly io: Io;
  readonly plan: StopPlan;
  readonly command: readonly string[];
  /** News for the user, such as that the lease was lost. */
  readonly announce: (news: HeldCommandNews) => void;
}

export type HeldCommandNews =
  | { readonly kind: "stopping"; readonly cause: StopCause; readonly reason: LossReason | null }
  | { readonly kind: "lost-but-ignored"; readonly reason: LossReason }
  | { readonly kind: "powerless"; readonly signal: NodeJS.Signals }
  | { readonly kind: "not-released"; readonly why: "unreachable" | "leftovers"; readonly endsInMs: number };

const PASSED_ON: readonly NodeJS.Signals[] = [
  "SIGHUP",
  "SIGINT",
  "SIGQUIT",
  "SIGTERM",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
  "SIGCONT",
];

/** These ask for the end whenever they come. SIGHUP may as well ask a command to read its settings again. */
const ASK_FOR_THE_END: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGTERM"];

/** A deadline is passed on when it has moved; it is looked for this often. */
const FEED_PART = 1 / 20;
const MIN_FEED_MS = 25;
const MAX_FEED_MS = 500;

export class HeldCommand {
  readonly #options: HeldCommandOptions;
  readonly #keeper: KeeperHandle;
  readonly #env: Env = realEnv;
  #lease: Lease | null = null;
  #isEnding = false;
  #askedToEndBy: NodeJS.Signals | null = null;

  /** Starts the keeper at once, so that it is ready when the lease is. */
  constructor(options: HeldCommandOptions) {
    this.#options = options;
    this.#keeper = new KeeperHandle({
      stopping: (cause) => this.#onStopping(cause),
      powerless: (signal) => options.announce({ kind: "powerless", signal }),
    });
  }

  /**
   * The signal by which somebody asked for the end, null when nobody did. It may have come when the command
   * was being stopped for another reason, or was gone and the lease on its way back.
   */
  get askedToEndBy(): NodeJS.Signals | null {
    return this.#askedToEndBy;
  }

  /** There will be no lease, and no command. */
  dismiss(): void {
    this.#keeper.dismiss();
  }

  /** Runs the command under the lease, and releases the lease when nothing of the command is left. */
  async run(lease: Lease, executor: LeaseExecutor): Promise<KeeperResult> {
    this.#lease = lease;
    const undo = [this.#passSignalsOn(), this.#tellLoss(lease, executor), this.#feed(lease)];
    const watching = this.#watchForRevocation(lease, executor);
    try {
      const { command, plan, io } = this.#options;
      const [program = "", ...args] = command;
      const env = { ...io.env, ...environmentOf(lease) };
      const deadline = deadlineOf(lease, this.#env);
      const result = await this.#keeper.run({ command: program, args, env, plan, deadline });
      this.#isEnding = true;
      await this.#giveBack(lease, result);
      return result;
    } finally {
      for (const stop of undo) stop();
      watching.then((watch) => watch?.close()).catch(() => undefined);
      this.#keeper.dismiss();
    }
  }

  #onStopping(cause: StopCause): void {
    this.#isEnding = true;
    if (cause === "leftovers") return;
    this.#options.announce({ kind: "stopping", cause, reason: this.#lease?.lossReason ?? null });
  }

  #passSignalsOn(): () => void {
    const { io } = this.#options;
    const tell = (signal: NodeJS.Signals): void => {
      const asksForTheEnd = ASK_FOR_THE_END.includes(signal) || (signal === "SIGHUP" && this.#isEnding);
      if (asksForTheEnd) this.#askedToEndBy = signal;
      this.#keeper.tell({ kind: "signal", signal });
    };
    const undoSignals = io.onSignals(PASSED_ON, tell);
    // Ctrl-Z: the command has a session of its own, where only SIGSTOP stops it; then this process follows.
    const undoStop = io.onSignals(["SIGTSTP"], () => {
      this.#keeper.tell({ kind: "signal", signal: "SIGSTOP" }, () => process.kill(process.pid, "SIGSTOP"));
    });
    return () => {
      undoSignals();
      undoStop();
    };
  }

  /** The store's word that the lease is over comes before its time is up. */
  #tellLoss(lease: Lease, executor: LeaseExecutor): () => void {
    const onLost = (): void => {
      const reason = lease.lossReason ?? "expired";
      if (reason === "released" && lease.state === "released") return;
      if (this.#options.plan.onLoss === "ignore") {
        this.#options.announce({ kind: "lost-but-ignored", reason });
        return;
      }
      // After a revoke nobody else gets the key before this holder's time is up, unless the policy says so.
      const hasTime = reason === "revoked" && executor.policy.revoked === "claim-at-expiry";
      this.#keeper.tell({ kind: "stop", urgency: hasTime ? "grace" : "now" });
    };
    lease.signal.addEventListener("abort", onLost, { once: true });
    return () => lease.signal.removeEventListener("abort", onLost);
  }

  #feed(lease: Lease): () => void {
    const everyMs = Math.min(MAX_FEED_MS, Math.max(MIN_FEED_MS, lease.ttlMs * FEED_PART));
    let last: Deadline = deadlineOf(lease, this.#env);
    const look = (): void => {
      const deadline = deadlineOf(lease, this.#env);
      // Reading twice gives deadlines that differ by the time between two readings of the clocks.
      if (deadline.monotonicMs > last.monotonicMs + 1) {
        last = deadline;
        this.#keeper.tell({ kind: "extend", deadline });
      }
      timer = this.#env.timer(everyMs, look, { keepAlive: true });
    };
    let timer = this.#env.timer(everyMs, look, { keepAlive: true });
    return () => timer.cancel();
  }

  /** Renewing at once when somebody ended the lease shows it now, not a third of the ttl later. */
  async #watchForRevocation(lease: Lease, executor: LeaseExecutor): Promise<StoreWatch | null> {
    const { tenant, name } = lease.key;
    const onEvent = async (event: StoreEvent): Promise<void> => {
      if (event.kind !== "changed" || event.key.name !== name || event.key.tenant !== tenant) return;
      if (!(await isStillHeld(lease, executor, event.stored)) && lease.isHeld()) await lease.renew();
    };
    // Without events the loss shows with the next renewal.
    const ignore = (): void => undefined;
    const watching = executor.watch({ tenant, prefix: name }, (event) => void onEvent(event).catch(ignore));
    return await watching.catch(() => null);
  }

  async #giveBack(lease: Lease, result: KeeperResult): Promise<void> {
    const { announce } = this.#options;
    const endsInMs = lease.remaining();
    if (result.kind !== "not-started" && result.leftovers === "alive") {
      announce({ kind: "not-released", why: "leftovers", endsInMs });
      // Stops renewing without releasing: the lease ends by itself.
      if (lease.isHeld()) lease.transfer();
      return;
    }
    const { reason } = await lease.release();
    if (reason === "unreachable" && endsInMs > 0) {
      announce({ kind: "not-released", why: "unreachable", endsInMs });
    }
  }
}

/** Events that do not carry the record make it look; a renewal in its place would announce itself without end. */
async function isStillHeld(
  lease: Lease,
  executor: LeaseExecutor,
  stored: StoredRecord | null,
): Promise<boolean> {
  if (stored === null) {
    const view = await executor.read(lease.key);
    return view?.state === "held" && view.fence === lease.fence;
  }
  return (
    stored.kind === "found" && stored.record.state === "held" && recordFence(stored.record) === lease.fence
  );
}

/**
 * What the command is told. The fence is for what it writes to; the token is not its business; and nothing
 * that `solehold` itself reads, or a command that runs `solehold` would get another's holder or tenant.
 */
function environmentOf(lease: Lease): Record<string, string> {
  return {
    SOLEHOLD_KEY: lease.key.name,
    SOLEHOLD_FENCE: lease.fence.toString(),
    SOLEHOLD_EXPIRES_AT: new Date(lease.expiresAtMs).toISOString(),
  };
}

/**
 * A command under a lease: forwards deadlines to the supervisor while the lease is renewed, stops the command when
 * the lease is lost, passes the user's signals on, and releases the lease once the command is really gone.
 */
import {
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
import type { StopCause } from "./deadline-enforcer.ts";
import type { StopPlan } from "./plan.ts";
import type { RunNotice } from "./result.ts";
import { type CommandResult, SupervisorHandle } from "./supervisor-handle.ts";

export interface LeasedCommandOptions {
  readonly io: Io;
  readonly plan: StopPlan;
  readonly command: readonly string[];
  readonly notify: (notice: RunNotice) => void;
}

/** These ask for the end whenever they come. SIGHUP may as well ask a command to read its settings again. */
const END_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGTERM"];
const OTHER_SIGNALS: readonly NodeJS.Signals[] = ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"];

/** How often it looks for a later deadline, as a part of the ttl. */
const POLL_PART = 1 / 20;
const MIN_POLL_MS = 25;
const MAX_POLL_MS = 500;

export class LeasedCommand {
  readonly #options: LeasedCommandOptions;
  readonly #supervisor: SupervisorHandle;
  #lease: Lease | null = null;
  #isEnding = false;
  #endRequestedBy: NodeJS.Signals | null = null;

  /** Starts the supervisor at once, so that it is ready when the lease is. */
  constructor(options: LeasedCommandOptions) {
    this.#options = options;
    this.#supervisor = new SupervisorHandle({
      stopping: (cause) => this.#onStopping(cause),
      signalDenied: (signal) => options.notify({ kind: "signal-denied", signal }),
    });
  }

  /**
   * The signal by which the user asked for the end, null without one. It may have come while the command was being
   * stopped for another reason, or after it had ended and before the lease was released.
   */
  get endRequestedBy(): NodeJS.Signals | null {
    return this.#endRequestedBy;
  }

  /** There will be no command, or no more of it. */
  stop(): void {
    this.#supervisor.stop();
  }

  /** Runs the command under the lease, and releases the lease when nothing of the command is left. */
  async run(lease: Lease, executor: LeaseExecutor): Promise<CommandResult> {
    this.#lease = lease;
    const undo = [this.#forwardSignals(), this.#stopWhenLost(lease, executor), this.#forwardDeadlines(lease)];
    const watching = this.#watchForRevocation(lease, executor);
    try {
      const { command, plan, io } = this.#options;
      const [program = "", ...args] = command;
      const env = { ...io.env, ...environmentOf(lease) };
      const deadline = deadlineOf(lease, realEnv);
      const result = await this.#supervisor.run({ command: program, args, env, plan, deadline });
      this.#isEnding = true;
      await this.#release(lease, result);
      return result;
    } finally {
      for (const stop of undo) stop();
      watching.then((watch) => watch?.close()).catch(() => undefined);
      this.#supervisor.stop();
    }
  }

  #onStopping(cause: StopCause): void {
    this.#isEnding = true;
    if (cause === "survivors") return;
    this.#options.notify({ kind: "stopping", cause, reason: this.#lease?.lossReason ?? null });
  }

  #forwardSignals(): () => void {
    const { io } = this.#options;
    const undoSignals = io.onSignals([...END_SIGNALS, ...OTHER_SIGNALS], (signal) => {
      const asksForTheEnd = END_SIGNALS.includes(signal) || (signal === "SIGHUP" && this.#isEnding);
      if (asksForTheEnd) this.#endRequestedBy = signal;
      this.#supervisor.send({ kind: "signal", signal });
    });
    // Ctrl-Z: the command has a session of its own, where only SIGSTOP stops it; then this process follows.
    const undoStop = io.onSignals(["SIGTSTP"], () => {
      this.#supervisor.send({ kind: "signal", signal: "SIGSTOP" }, () =>
        process.kill(process.pid, "SIGSTOP"),
      );
    });
    return () => {
      undoSignals();
      undoStop();
    };
  }

  /** The store may end the lease before its time is up. */
  #stopWhenLost(lease: Lease, { policy }: LeaseExecutor): () => void {
    const onLost = (): void => {
      const reason: LossReason = lease.lossReason ?? "expired";
      if (reason === "released" && lease.state === "released") return;
      if (this.#options.plan.onLoss === "ignore") {
        this.#options.notify({ kind: "lost-but-ignored", reason });
        return;
      }
      // After a revoke no other holder gets the key before this holder's time is up, unless the policy says so.
      const hasTime = reason === "revoked" && policy.revoked === "claim-at-expiry";
      this.#supervisor.send({ kind: "stop", urgency: hasTime ? "grace" : "now" });
    };
    lease.signal.addEventListener("abort", onLost, { once: true });
    return () => lease.signal.removeEventListener("abort", onLost);
  }

  #forwardDeadlines(lease: Lease): () => void {
    const everyMs = Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, lease.ttlMs * POLL_PART));
    let last: Deadline = deadlineOf(lease, realEnv);
    const poll = (): void => {
      const deadline = deadlineOf(lease, realEnv);
      // Reading twice gives deadlines that differ by the time between two readings of the clocks.
      if (deadline.monotonicMs > last.monotonicMs + 1) {
        last = deadline;
        this.#supervisor.send({ kind: "extend", deadline });
      }
      timer = realEnv.timer(everyMs, poll, { keepAlive: true });
    };
    let timer = realEnv.timer(everyMs, poll, { keepAlive: true });
    return () => timer.cancel();
  }

  /** A renewal right after a revocation finds it now, not a third of the ttl later. */
  async #watchForRevocation(lease: Lease, executor: LeaseExecutor): Promise<StoreWatch | null> {
    const { tenant, name } = lease.key;
    const onEvent = async (event: StoreEvent): Promise<void> => {
      if (event.kind !== "changed" || event.key.name !== name || event.key.tenant !== tenant) return;
      if (!(await isStillHeld(lease, executor, event.stored)) && lease.isHeld()) await lease.renew();
    };
    // Without events the next renewal finds the loss.
    const ignore = (): void => undefined;
    const watching = executor.watch({ tenant, prefix: name }, (event) => void onEvent(event).catch(ignore));
    return await watching.catch(() => null);
  }

  async #release(lease: Lease, result: CommandResult): Promise<void> {
    const { notify } = this.#options;
    const endsInMs = lease.remaining();
    if (result.kind !== "not-started" && result.survivors === "alive") {
      notify({ kind: "not-released", why: "survivors", endsInMs });
      // Stops renewing without releasing: the lease ends by itself.
      if (lease.isHeld()) lease.transfer();
      return;
    }
    const { reason } = await lease.release();
    if (reason === "unreachable" && endsInMs > 0) notify({ kind: "not-released", why: reason, endsInMs });
  }
}

/** For an event without the record it reads the record: a renewal instead would cause the next event, without end. */
async function isStillHeld(
  lease: Lease,
  executor: LeaseExecutor,
  stored: StoredRecord | null,
): Promise<boolean> {
  if (stored === null) {
    const view = await executor.read(lease.key);
    return view?.state === "held" && view.fence === lease.fence;
  }
  if (stored.kind !== "found") return false;
  return stored.record.state === "held" && recordFence(stored.record) === lease.fence;
}

/**
 * The command gets the fence, for what it writes to; not the token, which proves the holder; and no variable that
 * `solehold` itself reads, or a command that runs `solehold` would act as another holder or tenant.
 */
function environmentOf(lease: Lease): Record<string, string> {
  return {
    SOLEHOLD_KEY: lease.key.name,
    SOLEHOLD_FENCE: lease.fence.toString(),
    SOLEHOLD_EXPIRES_AT: new Date(lease.expiresAtMs).toISOString(),
  };
}

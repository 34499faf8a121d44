/**
 * A command under a lease, or several: forwards deadlines to the supervisor while the lease is renewed, stops the command when
 * the lease is lost, passes the user's signals on, and releases the lease once the command is really gone. With several the
 * first one that ends is the command's end.
 */
import type { Lease, LeaseExecutor, LeaseSet, LossReason } from "solehold";
import { realEnv } from "solehold/internal";
import type { Io } from "../io.ts";
import { deadlineOf } from "./deadline.ts";
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

const OF_FURTHER_LEASES = /^SOLEHOLD_(KEY|SLOT|FENCE)_\d+$/;

/** These ask for the end whenever they come. SIGHUP may as well ask a command to read its settings again. */
const END_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGTERM"];
const OTHER_SIGNALS: readonly NodeJS.Signals[] = ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"];

export class LeasedCommand {
  readonly #options: LeasedCommandOptions;
  readonly #supervisor: SupervisorHandle;
  #held: LeaseSet | null = null;
  #isEnding = false;
  #endRequestedBy: NodeJS.Signals | null = null;

  /** Starts the supervisor at once, so that it is ready when the lease is. */
  constructor(options: LeasedCommandOptions) {
    this.#options = options;
    this.#supervisor = new SupervisorHandle({
      stopping: (cause) => this.#onStopping(cause),
      signalDenied: (signal) => options.notify({ kind: "signal-denied", key: this.#endsFirst.key, signal }),
    });
  }

  /**
   * The signal by which the user asked for the end, null without one. It may have come while the command was being
   * stopped for another reason, or after it had ended and before the lease was released.
   */
  get endRequestedBy(): NodeJS.Signals | null {
    return this.#endRequestedBy;
  }

  /**
   * Acquires the lease when the supervisor is there, so that the time in which that starts is not the lease's: on a busy
   * machine it may be longer than the ttl.
   */
  async acquire<Held>(signal: AbortSignal, acquire: (signal: AbortSignal) => Promise<Held>): Promise<Held> {
    await this.#supervisor.ready;
    signal.throwIfAborted();
    return await acquire(signal);
  }

  /** There will be no command, or no more of it. */
  stop(): void {
    this.#supervisor.stop();
  }

  /** Runs the command under the leases, and releases them when nothing of the command is left. */
  async run(held: LeaseSet, executor: LeaseExecutor): Promise<CommandResult> {
    this.#held = held;
    const { leases } = held;
    const undo = [
      this.#forwardSignals(),
      ...leases.map((lease) => this.#stopWhenLost(lease, executor)),
      ...leases.map((lease) => this.#forwardDeadlines(lease, held)),
    ];
    try {
      const { command, plan, io } = this.#options;
      const [program = "", ...args] = command;
      const env = { ...inherited(io.env), ...environmentOf(leases) };
      const deadline = deadlineOf(held, realEnv);
      const result = await this.#supervisor.run({ command: program, args, env, plan, deadline });
      this.#isEnding = true;
      await Promise.all(leases.map((lease) => this.#release(lease, result)));
      return result;
    } finally {
      for (const stop of undo) stop();
      this.#supervisor.stop();
    }
  }

  #onStopping(cause: StopCause): void {
    this.#isEnding = true;
    if (cause === "survivors") return;
    this.#options.notify({ kind: "stopping", cause, ...this.#endsFirst });
  }

  /** The lease that is over, or will be the first to be: the command ends with it. */
  get #endsFirst(): { readonly key: string; readonly reason: LossReason | null } {
    const [first] = [...(this.#held?.leases ?? [])].sort((a, b) => a.remaining() - b.remaining());
    return { key: first?.key.name ?? "", reason: first?.lossReason ?? null };
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
        this.#options.notify({ kind: "lost-but-ignored", key: lease.key.name, reason });
        return;
      }
      this.#isEnding = true;
      // After a revoke no other holder gets the key before this holder's time is up, unless the policy says so.
      const hasTime = reason === "revoked" && policy.revoked === "claim-at-expiry";
      this.#supervisor.send({ kind: "stop", urgency: hasTime ? "grace" : "now" });
    };
    lease.signal.addEventListener("abort", onLost, { once: true });
    return () => lease.signal.removeEventListener("abort", onLost);
  }

  /** Each renewal moves the instant at which the command has to be over: that of the lease that ends first. */
  #forwardDeadlines(lease: Lease, held: LeaseSet): () => void {
    return lease.onRenewed(() => {
      this.#supervisor.send({ kind: "extend", deadline: deadlineOf(held, realEnv) });
    });
  }

  async #release(lease: Lease, result: CommandResult): Promise<void> {
    const { notify } = this.#options;
    const { name: key } = lease.key;
    const endsInMs = lease.remaining();
    if (result.kind !== "not-started" && result.survivors === "alive") {
      notify({ kind: "not-released", key, why: "survivors", endsInMs });
      lease.abandon();
      return;
    }
    const { reason } = await lease.release();
    if (reason === "unreachable" && endsInMs > 0)
      notify({ kind: "not-released", key, why: reason, endsInMs });
  }
}

/** What proves the caller to a server is not the command's business, nor are the further leases of a run around this. */
function inherited({
  SOLEHOLD_API_KEY: _apiKey,
  SOLEHOLD_TOKEN: _token,
  SOLEHOLD_URL: url,
  ...rest
}: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  for (const name of Object.keys(rest)) if (OF_FURTHER_LEASES.test(name)) delete rest[name];
  // A server's address may have the API key in it.
  return url === undefined ? rest : { ...rest, SOLEHOLD_URL: url.replace(/(https?:\/\/)[^/?#,]*@/gi, "$1") };
}

/**
 * The command gets the fence, for what it writes to; not the token, which proves the holder; and no variable that
 * `solehold` itself reads, or a command that runs `solehold` would act as another holder or tenant.
 */
function environmentOf(leases: readonly Lease[]): Record<string, string> {
  const expiresAtMs = Math.min(...leases.map((lease) => lease.expiresAtMs));
  const variables: Record<string, string> = { SOLEHOLD_EXPIRES_AT: new Date(expiresAtMs).toISOString() };
  for (const [index, { key, slot, fence }] of leases.entries()) {
    const number = index === 0 ? "" : `_${index + 1}`;
    variables[`SOLEHOLD_KEY${number}`] = key.name;
    variables[`SOLEHOLD_SLOT${number}`] = String(slot);
    variables[`SOLEHOLD_FENCE${number}`] = fence.toString();
  }
  return variables;
}

/**
 * The supervisor: a process of its own between `solehold run` and the command. It starts the command, gets
 * fresh deadlines from the holder through a pipe, and ends the command's whole process group in time when
 * no fresh one comes: the holder may be stopped, swapped out, blocked, killed, or cut off from the store.
 *
 * It alone starts the command, and only while the deadline is good, so the command never runs unsupervised.
 * It lives in a session of its own, so signals that a terminal or systemd sends to the holder do not reach it.
 * Not promised: anything while the supervisor itself is stopped or killed with SIGKILL.
 */
import { spawn } from "node:child_process";
import { realEnv } from "solehold/internal";
import { leftUntil } from "./deadline.ts";
import { DeadlineEnforcer, type StopCause } from "./deadline-enforcer.ts";
import type { StopPlan } from "./plan.ts";
import { awaitGroupEnd, groupExists, signalGroup } from "./process-group.ts";
import type { HolderMessage, StartMessage, SupervisorMessage } from "./protocol.ts";

/** What a group gets, at most, to be torn down after SIGKILL. */
const GONE_WITHIN_MS = 1_000;
const SHIELDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGTSTP"] as const;

class Supervisor {
  #enforcer: DeadlineEnforcer | null = null;
  #groupId: number | null = null;
  #ended = false;

  listen(): void {
    for (const signal of SHIELDED) process.on(signal, () => undefined);
    process.on("message", (message) => this.#onMessage(message as HolderMessage));
    process.on("disconnect", () => this.#onDisconnect());
    send({ kind: "ready" });
  }

  #onMessage(message: HolderMessage): void {
    switch (message.kind) {
      case "start":
        this.#start(message);
        break;
      case "extend":
        this.#enforcer?.extend(message.deadline);
        break;
      case "stop":
        this.#enforcer?.stop("lost", message.urgency);
        break;
      case "signal":
        if (this.#groupId !== null && !this.#ended) forwardSignal(this.#groupId, message.signal);
        break;
    }
  }

  /** The holder is gone, so nothing renews the lease: the work has to stop, with its grace while the lease lasts. */
  #onDisconnect(): void {
    if (this.#enforcer === null || this.#ended) process.exit(0);
    this.#enforcer.stop("orphaned", "grace");
  }

  #start({ command, args, env, plan, deadline }: StartMessage): void {
    const leftMs = leftUntil(deadline, realEnv) - plan.marginMs - plan.graceMs;
    if (leftMs <= 0 && plan.onLoss !== "ignore") {
      failed("LATE", "the lease was almost over before the command could start");
      return;
    }
    const child = spawn(command, args, { env, stdio: "inherit", detached: true });
    const groupId = child.pid;
    if (groupId === undefined) {
      child.once("error", (error: NodeJS.ErrnoException) => failed(error.code ?? "ERROR", error.message));
      return;
    }
    // First of all: should this process be killed, the holder can end the group only if it knows it.
    send({ kind: "started", groupId });
    this.#groupId = groupId;
    const kill = (signal: NodeJS.Signals): void => {
      forwardSignal(groupId, signal);
      // A stopped process acts on SIGTERM only when it runs again.
      if (signal === "SIGTERM") signalGroup(groupId, "SIGCONT");
    };
    const onStopping = (cause: StopCause): void => send({ kind: "stopping", cause });
    const enforcer = new DeadlineEnforcer({ env: realEnv, plan, deadline, kill, onStopping });
    this.#enforcer = enforcer;
    child.once("exit", (code, signal) => {
      const { stoppedBecause } = enforcer;
      clearGroup(groupId, enforcer, plan).then((survivors) => {
        enforcer.finish();
        this.#ended = true;
        send({ kind: "ended", code, signal, stoppedBecause, survivors });
        leave();
      });
    });
  }
}

/** The command has ended. Processes of its group that survive it would go on working without a lease. */
async function clearGroup(
  groupId: number,
  enforcer: DeadlineEnforcer,
  plan: StopPlan,
): Promise<"none" | "alive"> {
  if (plan.onLoss === "ignore" || !groupExists(groupId)) return "none";
  enforcer.stop("survivors", "grace");
  if ((await awaitGroupEnd(groupId, realEnv, plan.graceMs)) === "none") return "none";
  enforcer.stop("survivors", "now");
  return await awaitGroupEnd(groupId, realEnv, GONE_WITHIN_MS);
}

function forwardSignal(groupId: number, signal: NodeJS.Signals): void {
  if (signalGroup(groupId, signal) === "denied") send({ kind: "signal-denied", signal });
}

function failed(code: string, message: string): void {
  send({ kind: "not-started", code, message });
  leave();
}

/** Messages on their way are still delivered; the process ends with the pipe. */
function leave(): void {
  if (process.connected) process.disconnect();
  else process.exit(0);
}

/** Does nothing when the holder is gone. */
function send(message: SupervisorMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

new Supervisor().listen();

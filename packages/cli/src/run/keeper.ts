/**
 * The keeper: a process of its own between `solehold run` and the command. It starts the command, gets
 * fresh deadlines from the holder through a pipe, and ends the command's whole process group in time when
 * no fresh one comes: the holder may be stopped, swapped out, blocked, killed, or cut off from the store.
 *
 * It alone starts the command, and only while the deadline is good, so there is no moment in which the
 * command runs and nobody watches it. It lives in a session of its own, so what a terminal or a
 * supervisor sends to the holder does not reach it.
 * Not promised: anything while the keeper itself is stopped or killed with SIGKILL.
 */
import { spawn } from "node:child_process";
import { realEnv } from "solehold/internal";
import { leftUntil } from "./deadline.ts";
import { Guard, type StopCause } from "./guard.ts";
import type { StopPlan } from "./plan.ts";
import { groupExists, groupLeft, signalGroup } from "./process-group.ts";
import type { HolderMessage, KeeperMessage, StartMessage } from "./protocol.ts";

/** What a group gets, at most, to be torn down after SIGKILL. */
const GONE_WITHIN_MS = 1_000;
const SHIELDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGTSTP"] as const;

class Keeper {
  #guard: Guard | null = null;
  #groupId: number | null = null;
  #ended = false;

  listen(): void {
    for (const signal of SHIELDED) process.on(signal, () => undefined);
    process.on("message", (message) => this.#onMessage(message as HolderMessage));
    process.on("disconnect", () => this.#onHolderGone());
  }

  #onMessage(message: HolderMessage): void {
    switch (message.kind) {
      case "start":
        this.#start(message);
        break;
      case "extend":
        this.#guard?.extend(message.deadline);
        break;
      case "stop":
        this.#guard?.stop("lost", message.urgency);
        break;
      case "signal":
        if (this.#groupId !== null && !this.#ended) send(this.#groupId, message.signal);
        break;
    }
  }

  /** Nobody will renew any more: the work has to stop, and has its grace while the lease lasts. */
  #onHolderGone(): void {
    if (this.#guard === null || this.#ended) process.exit(0);
    this.#guard.stop("orphaned", "grace");
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
    // Before all else: until the holder knows the group it could not end it, should this process be killed.
    tell({ kind: "started", groupId });
    this.#groupId = groupId;
    const kill = (signal: NodeJS.Signals): void => {
      send(groupId, signal);
      // A stopped process acts on SIGTERM only when it runs again.
      if (signal === "SIGTERM") signalGroup(groupId, "SIGCONT");
    };
    const onStopping = (cause: StopCause): void => tell({ kind: "stopping", cause });
    const guard = new Guard({ env: realEnv, plan, deadline, kill, onStopping });
    this.#guard = guard;
    child.once("exit", (code, signal) => {
      const { stoppedBecause } = guard;
      clearGroup(groupId, guard, plan).then((leftovers) => {
        guard.finish();
        this.#ended = true;
        tell({ kind: "ended", code, signal, stoppedBecause, leftovers });
        leave();
      });
    });
  }
}

/** The command has ended. What it left behind in its group would go on working without a lease. */
async function clearGroup(groupId: number, guard: Guard, plan: StopPlan): Promise<"none" | "alive"> {
  if (plan.onLoss === "ignore" || !groupExists(groupId)) return "none";
  guard.stop("leftovers", "grace");
  if ((await groupLeft(groupId, realEnv, plan.graceMs)) === "none") return "none";
  guard.stop("leftovers", "now");
  return await groupLeft(groupId, realEnv, GONE_WITHIN_MS);
}

function send(groupId: number, signal: NodeJS.Signals): void {
  if (signalGroup(groupId, signal) === "forbidden") tell({ kind: "powerless", signal });
}

function failed(code: string, message: string): void {
  tell({ kind: "not-started", code, message });
  leave();
}

/** What was told is still delivered; the process ends with the pipe. */
function leave(): void {
  if (process.connected) process.disconnect();
  else process.exit(0);
}

/** The holder may be gone: then nobody needs to know. */
function tell(message: KeeperMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

new Keeper().listen();

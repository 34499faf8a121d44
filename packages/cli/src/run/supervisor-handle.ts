/**
 * The holder's side of the supervisor: starts it, sends it deadlines and signals, and receives how the command
 * ended. If the supervisor dies, by an administrator or for lack of memory, the command is killed at once: it must
 * not work unsupervised.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { realEnv } from "solehold/internal";
import { errorFailure } from "../failure.ts";
import type { StopCause } from "./deadline-enforcer.ts";
import { awaitGroupEnd, signalGroup } from "./process-group.ts";
import type { CommandEnd, HolderMessage, StartMessage, SupervisorMessage } from "./protocol.ts";

export type CommandResult =
  | ({ readonly kind: "ended" } & CommandEnd)
  | { readonly kind: "not-started"; readonly code: string; readonly message: string }
  | { readonly kind: "supervisor-died"; readonly survivors: "none" | "alive" };

export interface SupervisorListener {
  stopping(cause: StopCause): void;
  signalDenied(signal: NodeJS.Signals): void;
}

const GONE_WITHIN_MS = 1_000;
const PROGRAM = fileURLToPath(new URL("./supervisor.js", import.meta.url));

export class SupervisorHandle {
  readonly #process: ChildProcess;
  readonly #listener: SupervisorListener;
  readonly #result: Promise<CommandResult>;
  #resolve: (result: CommandResult) => void = () => undefined;
  #onReady: () => void = () => undefined;
  #settled = false;
  #groupId: number | null = null;

  /** Resolves when the supervisor can start a command at once; also when it died, which `run` tells. */
  readonly ready: Promise<void>;

  /** Starts the supervisor, not the command. That takes as long as Node does: begin before it is needed. */
  constructor(listener: SupervisorListener) {
    // Without process groups nothing could be promised about the processes that a command starts.
    if (process.platform === "win32") {
      const message = "running a command under a lease needs process groups: use Linux, macOS or WSL";
      throw errorFailure("PLATFORM_UNSUPPORTED", message);
    }
    this.#listener = listener;
    this.#result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.ready = new Promise((resolve) => {
      this.#onReady = resolve;
    });
    // NODE_OPTIONS are meant for the command: the supervisor must not take a debugger's port.
    const { NODE_OPTIONS: _nodeOptions, ...env } = process.env;
    this.#process = spawn(process.execPath, [PROGRAM], {
      stdio: ["inherit", "inherit", "inherit", "ipc"],
      detached: true,
      env,
    });
    this.#process.on("message", (message) => this.#onMessage(message as SupervisorMessage));
    this.#process.on("error", () => this.#onClosed());
    this.#process.on("close", () => this.#onClosed());
  }

  /** Starts the command and resolves when it has ended. */
  async run(message: Omit<StartMessage, "kind">): Promise<CommandResult> {
    this.send({ kind: "start", ...message });
    return await this.#result;
  }

  send(message: HolderMessage, onSent?: () => void): void {
    if (this.#process.connected) this.#process.send(message, undefined, undefined, () => onSent?.());
    else onSent?.();
  }

  /** Ends the supervisor, and with it a command that is still running. */
  stop(): void {
    if (this.#process.connected) this.#process.disconnect();
    this.#process.unref();
  }

  #onMessage(message: SupervisorMessage): void {
    switch (message.kind) {
      case "ready":
        this.#onReady();
        break;
      case "started":
        this.#groupId = message.groupId;
        break;
      case "stopping":
        this.#listener.stopping(message.cause);
        break;
      case "signal-denied":
        this.#listener.signalDenied(message.signal);
        break;
      case "not-started":
      case "ended":
        this.#settle(message);
        break;
    }
  }

  #settle(result: CommandResult): void {
    this.#settled = true;
    this.#onReady();
    this.#resolve(result);
  }

  #onClosed(): void {
    // After the end the group's number may belong to other processes.
    if (this.#settled) return;
    const groupId = this.#groupId;
    if (groupId === null) {
      this.#settle({ kind: "supervisor-died", survivors: "none" });
      return;
    }
    signalGroup(groupId, "SIGKILL");
    awaitGroupEnd(groupId, realEnv, GONE_WITHIN_MS).then((survivors) =>
      this.#settle({ kind: "supervisor-died", survivors }),
    );
  }
}

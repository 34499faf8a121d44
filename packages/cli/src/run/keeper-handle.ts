/**
 * The holder's side of the keeper: starts it, passes deadlines and signals on, and hears how the command
 * ended. Should the keeper die, which nobody but an administrator or a starving machine brings about, the
 * command is killed at once: it may not work unwatched.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Env, realEnv } from "solehold";
import { EXIT } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { StopCause } from "./guard.ts";
import { groupLeft, signalGroup } from "./process-group.ts";
import type { CommandEnd, HolderMessage, KeeperMessage, StartMessage } from "./protocol.ts";

export type KeeperResult =
  | ({ readonly kind: "ended" } & CommandEnd)
  | { readonly kind: "not-started"; readonly code: string; readonly message: string }
  | { readonly kind: "keeper-died"; readonly leftovers: "none" | "alive" };

export interface KeeperListener {
  stopping(cause: StopCause): void;
  powerless(signal: NodeJS.Signals): void;
}

/** Without process groups nothing could be promised about what a command started. */
function noProcessGroups(): Failure {
  return new Failure("running a command under a lease needs process groups: use Linux, macOS or WSL", {
    exitCode: EXIT.error,
    code: "PLATFORM_UNSUPPORTED",
  });
}

const GONE_WITHIN_MS = 1_000;
const PROGRAM = fileURLToPath(new URL("./keeper.js", import.meta.url));

export class KeeperHandle {
  readonly #process: ChildProcess;
  readonly #listener: KeeperListener;
  readonly #env: Env = realEnv;
  readonly #result: Promise<KeeperResult>;
  #resolve: (result: KeeperResult) => void = () => undefined;
  #settled = false;
  #groupId: number | null = null;

  /** Starts the keeper, not the command. It takes as long as Node does to start: begin before it is needed. */
  constructor(listener: KeeperListener) {
    if (process.platform === "win32") throw noProcessGroups();
    this.#listener = listener;
    this.#result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    // What is meant for Node is meant for the command: a debugger's port must not be taken by the keeper.
    const { NODE_OPTIONS: _nodeOptions, ...env } = process.env;
    this.#process = spawn(process.execPath, [PROGRAM], {
      stdio: ["inherit", "inherit", "inherit", "ipc"],
      detached: true,
      env,
    });
    this.#process.on("message", (message) => this.#onMessage(message as KeeperMessage));
    this.#process.on("error", () => this.#onClosed());
    this.#process.on("close", () => this.#onClosed());
  }

  /** Starts the command and resolves when it has ended. */
  async run(message: Omit<StartMessage, "kind">): Promise<KeeperResult> {
    this.tell({ kind: "start", ...message });
    return await this.#result;
  }

  tell(message: HolderMessage, onSent?: () => void): void {
    if (this.#process.connected) this.#process.send(message, undefined, undefined, () => onSent?.());
    else onSent?.();
  }

  /** Without a command there is nothing to keep. */
  dismiss(): void {
    if (this.#process.connected) this.#process.disconnect();
    this.#process.unref();
  }

  #onMessage(message: KeeperMessage): void {
    switch (message.kind) {
      case "started":
        this.#groupId = message.groupId;
        break;
      case "stopping":
        this.#listener.stopping(message.cause);
        break;
      case "powerless":
        this.#listener.powerless(message.signal);
        break;
      case "not-started":
      case "ended":
        this.#settle(message);
        break;
    }
  }

  #settle(result: KeeperResult): void {
    this.#settled = true;
    this.#resolve(result);
  }

  #onClosed(): void {
    // After the end the group's number may belong to somebody else.
    if (this.#settled) return;
    const groupId = this.#groupId;
    if (groupId === null) {
      this.#settle({ kind: "keeper-died", leftovers: "none" });
      return;
    }
    signalGroup(groupId, "SIGKILL");
    groupLeft(groupId, this.#env, GONE_WITHIN_MS).then((leftovers) =>
      this.#settle({ kind: "keeper-died", leftovers }),
    );
  }
}

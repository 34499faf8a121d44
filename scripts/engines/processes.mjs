// One operating-system process of an engine: start, stop, pause, kill, restart.
// It dies with the process that started it: the kernel sends SIGKILL when the parent ends, however it ends, so a
// killed test run leaves no server behind. (The kernel ties this to the parent THREAD: start engines from the main one.)
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { removeAllDataDirs } from "./folders.mjs";
import { descendants, processInfo } from "./proc.mjs";
import { waitFor } from "./waiting.mjs";

const READY_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 15_000;
const LOG_TAIL_LINES = 12;

/**
 * @typedef {object} ProcessSpec
 * @property {string} name
 * @property {string} command
 * @property {readonly string[]} args
 * @property {string} logFile Gets what the process prints.
 * @property {() => unknown} ready Truthy when it answers; a throw means "not yet".
 * @property {NodeJS.Signals} [stopSignal] Its graceful end; SIGTERM when not given.
 * @property {string} [user] Runs as this user; only possible for root.
 * @property {NodeJS.ProcessEnv} [env]
 * @property {string} [lossOnKill] Set where a kill loses the data: why it cannot be started again, and what to do.
 */

/** @type {Set<ManagedProcess>} */
const running = new Set();
process.once("exit", () => {
  for (const each of running) each.killNow();
  removeAllDataDirs();
});

/** @typedef {import("./index.mjs").EngineProcess} EngineProcess */

/** @implements {EngineProcess} */
export class ManagedProcess {
  #spec;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;
  /** @type {Promise<void>} */
  #ended = Promise.resolve();
  #isRunning = false;
  #wasKilled = false;
  #endReason = "";
  #pid = 0;

  /** @param {ProcessSpec} spec */
  constructor(spec) {
    this.#spec = spec;
  }

  get name() {
    return this.#spec.name;
  }

  get pid() {
    return this.#pid;
  }

  get running() {
    return this.#isRunning;
  }

  /** Resolves when it answers; rejects with the end of its log when it ends before that. */
  async start() {
    if (this.#isRunning) throw new Error(`${this.name} runs already`);
    if (this.#wasKilled && this.#spec.lossOnKill !== undefined) throw new Error(this.#spec.lossOnKill);
    this.#spawn();
    try {
      await waitFor(`${this.name} did not become ready`, READY_TIMEOUT_MS, this.#spec.ready, () =>
        this.#isRunning
          ? undefined
          : `it ${this.#endReason}. End of ${this.#spec.logFile}:\n${this.#logTail()}`,
      );
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  async restart() {
    await this.stop();
    await this.start();
  }

  /** @param {NodeJS.Signals} [signal] */
  async stop(signal = this.#spec.stopSignal ?? "SIGTERM") {
    if (!this.#isRunning) return;
    this.#child?.kill(signal);
    // A stopped process takes the signal only once it runs again.
    await this.resume();
    const timer = setTimeout(() => this.killNow(), STOP_GRACE_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  /** A root that was about to fork has done so before it stops: once all stand still the tree is looked at again. */
  async pause() {
    /** @type {readonly number[]} */
    let stopped = [];
    for (let found = -1; found !== stopped.length; ) {
      found = stopped.length;
      const pids = this.#freezeTree();
      await waitFor(`${this.name} did not stop on SIGSTOP`, 5000, () =>
        pids.every((pid) => ["T", undefined].includes(processInfo(pid)?.state)),
      );
      stopped = pids;
    }
  }

  async resume() {
    // Descendants first: the root may act on the silence of a child, never the other way round.
    for (const pid of this.#tree().reverse()) signal(pid, "SIGCONT");
  }

  async kill() {
    const pids = this.killNow();
    await this.#ended;
    await waitFor(`${this.name} did not end on SIGKILL`, 5000, () => pids.every((pid) => !processInfo(pid)));
  }

  /** Sends SIGKILL to the whole tree, without waiting for the end. */
  killNow() {
    const pids = this.#freezeTree();
    for (const pid of pids) signal(pid, "SIGKILL");
    return pids;
  }

  #spawn() {
    const { command, args, env, logFile, user } = this.#spec;
    const asUser = user === undefined ? [] : [`--reuid=${user}`, `--regid=${user}`, "--clear-groups"];
    const log = openSync(logFile, "a");
    const child = spawn("setpriv", ["--pdeathsig", "KILL", ...asUser, "--", command, ...args], {
      stdio: ["ignore", log, log],
      env: { ...process.env, ...env },
    });
    closeSync(log);
    this.#child = child;
    this.#pid = child.pid ?? 0;
    this.#isRunning = true;
    running.add(this);
    this.#ended = new Promise((resolve) => {
      /** @param {string} reason */
      const end = (reason) => {
        this.#endReason = reason;
        this.#isRunning = false;
        running.delete(this);
        resolve();
      };
      child.once("exit", (code, signalName) => {
        this.#wasKilled = signalName === "SIGKILL";
        end(`ended with ${signalName ?? `code ${code}`}`);
      });
      child.once("error", (error) => end(`could not be started: ${error.message}`));
    });
  }

  #tree() {
    return this.#isRunning && this.#pid !== 0 ? [this.#pid, ...descendants(this.#pid)] : [];
  }

  /** The root is stopped before its descendants are listed, so that it cannot fork one that we miss. */
  #freezeTree() {
    if (this.#isRunning && this.#pid !== 0) signal(this.#pid, "SIGSTOP");
    const pids = this.#tree();
    for (const pid of pids) signal(pid, "SIGSTOP");
    return pids;
  }

  #logTail() {
    try {
      return readFileSync(this.#spec.logFile, "utf8").trim().split("\n").slice(-LOG_TAIL_LINES).join("\n");
    } catch (error) {
      return String(error);
    }
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} name
 */
function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch {
    // It ended between the listing and the signal.
  }
}

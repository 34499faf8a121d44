// One soak of one engine: workers that add to guarded counters, while they are stopped, continued and killed at random
// and the engine is restarted under them. In the end every accepted write must be in the counter.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ENGINES } from "./engines.mjs";
import { Ledger } from "./ledger.mjs";

const KEYS = ["red", "green", "blue"];
const WORKER = join(import.meta.dirname, "worker.mjs");
/** Between two disturbances of workers, and between two restarts of the engine. */
const DISTURB_EVERY_MS = 150;
const RESTART_EVERY_MS = 4_000;
/** After the last disturbance the workers must get on within this. */
const HEALING_MS = 20_000;
const monotonicMs = () => Number(process.hrtime.bigint() / 1_000n) / 1_000;
const between = (low, high) => low + Math.random() * (high - low);

/** The workers, and what was done to them. */
class Crew {
  stops = 0;
  kills = 0;
  /** @type {string[]} */
  crashes = [];
  #workers = [];
  #started = 0;
  #ground;
  #ledger;
  #plant;

  constructor(ground, ledger, plant) {
    this.#ground = ground;
    this.#ledger = ledger;
    this.#plant = plant;
  }

  /** Resolves when it has opened the store. */
  async start() {
    this.#started += 1;
    const holder = `worker-${this.#started}`;
    const { url, ttlMs, env = {} } = this.#ground;
    const task = JSON.stringify({ url, ttlMs, holder, keys: KEYS, plant: this.#plant });
    const child = fork(WORKER, [task], {
      env: { ...process.env, ...env },
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const worker = { child, holder, state: "running", errors: "" };
    this.#workers.push(worker);
    child.stderr.on("data", (chunk) => {
      worker.errors = `${worker.errors}${chunk}`.slice(-2_000);
    });
    const ready = new Promise((resolve) => {
      child.on("message", (message) => {
        if (message.kind === "ready") resolve();
        else this.#hear(worker, message);
      });
      child.once("exit", (code, signal) => {
        if (worker.state !== "killed")
          this.crashes.push(`${holder} ended by itself (${signal ?? code}): ${worker.errors.trim()}`);
        resolve();
      });
    });
    await ready;
  }

  #hear({ child, holder }, message) {
    if (message.kind === "releasing") this.#ledger.ended(message);
    else {
      const answer = this.#ledger.answer(holder, message);
      if (child.connected) child.send({ id: message.id, answer }, () => undefined);
    }
  }

  /** Stops a worker for a while, or kills one and starts another. */
  async disturb() {
    const running = this.#workers.filter(({ state }) => state === "running");
    const victim = running[Math.floor(Math.random() * running.length)];
    if (victim === undefined) return;
    if (Math.random() < 0.25) {
      this.kills += 1;
      await this.#kill(victim);
      void this.start();
      return;
    }
    this.stops += 1;
    victim.state = "stopped";
    victim.child.kill("SIGSTOP");
    // Longer than the ttl for some, shorter for others.
    const pauseMs = between(20, this.#ground.ttlMs * 2);
    setTimeout(() => {
      victim.child.kill("SIGCONT");
      if (victim.state === "stopped") victim.state = "running";
    }, pauseMs);
  }

  /** The driver is being ended: nobody else would end those that are stopped. */
  abandon() {
    for (const { child } of this.#workers) child.kill("SIGKILL");
  }

  async end() {
    await Promise.all(this.#workers.map((worker) => this.#kill(worker)));
  }

  async #kill(worker) {
    worker.state = "killed";
    this.#workers = this.#workers.filter((each) => each !== worker);
    const { child, holder } = worker;
    if (child.exitCode === null && child.signalCode === null) {
      // When its channel has ended, every message of its has arrived.
      const gone = Promise.all([once(child, "exit"), once(child, "disconnect")]);
      child.kill("SIGKILL");
      await gone;
    }
    this.#ledger.gone(holder, monotonicMs());
  }
}

/**
 * @param {string} name
 * @param {{ seconds: number, processes: number, plant: "guard" | "lease" | null, onProgress: (state: object) => void }} options
 */
export async function soak(name, { seconds, processes, plant, onProgress }) {
  const ground = await ENGINES[name]();
  const ledger = new Ledger(KEYS, plant === "guard" ? "off" : "on");
  const crew = new Crew(ground, ledger, plant);
  let restarts = 0;
  let recoveryMs = null;
  const state = () => ({
    engine: name,
    version: ground.version,
    processes,
    grants: ledger.grants,
    accepted: ledger.accepted,
    counter: ledger.value,
    refused: ledger.refused,
    stops: crew.stops,
    kills: crew.kills,
    restarts,
  });
  const onExit = () => crew.abandon();
  process.once("exit", onExit);
  try {
    await Promise.all(Array.from({ length: processes }, () => crew.start()));
    const endMs = monotonicMs() + seconds * 1_000;
    const restarting = (async () => {
      for (;;) {
        await delay(Math.min(RESTART_EVERY_MS, seconds * 400) * between(0.75, 1.25));
        if (ground.restart === null || monotonicMs() >= endMs) return;
        await ground.restart();
        restarts += 1;
      }
    })();
    while (monotonicMs() < endMs) {
      await delay(between(0.5, 1.5) * DISTURB_EVERY_MS);
      await crew.disturb();
      onProgress({ ...state(), elapsedSeconds: seconds - (endMs - monotonicMs()) / 1_000 });
    }
    await restarting;
    recoveryMs = await progressAfterwards(ledger);
  } finally {
    await crew.end();
    process.off("exit", onExit);
    await ground.stop();
  }
  const stuck =
    recoveryMs === null ? [`nobody wrote within ${HEALING_MS} ms after the last disturbance`] : [];
  return {
    ...state(),
    seconds,
    recoveryMs,
    failures: Object.fromEntries(ledger.failures),
    violations: [...ledger.verdict(), ...crew.crashes, ...stuck],
  };
}

/** How long it took until three more writes were accepted; null when they were not. */
async function progressAfterwards(ledger) {
  const before = ledger.accepted;
  const sinceMs = monotonicMs();
  while (monotonicMs() < sinceMs + HEALING_MS) {
    if (ledger.accepted >= before + 3) return Math.round(monotonicMs() - sinceMs);
    await delay(10);
  }
  return null;
}

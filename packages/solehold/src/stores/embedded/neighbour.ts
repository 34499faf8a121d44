/** Another process that has the store open or is about to, seen from one that opens it: see door.ts. */
import { existsSync, rmSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import type { Env, Timer } from "../../env/index.ts";
import { withSocketPath } from "./socket-path.ts";
import { isStopped } from "./stopped-process.ts";

/**
 * What it says, a line each: that it is about to open the store, and its name; that it has it open; that it stands still,
 * when it was asked to.
 */
export const OPENING = "opening";
export const HERE = "here";
export const STANDS_STILL = "standing still";
const STAND_STILL = "stand still";

const TRY_AGAIN_MS = 20;

/** The name of the file that says that the process with this name has the store open, and is not about to. */
export function openMarkOf(name: string): string {
  return `open-${name.split("-").at(-1)}`;
}

export function removeFromDoor(folder: string, name: string): void {
  for (const each of [openMarkOf(name), name]) rmSync(join(folder, each), { force: true });
}

/** Who was found stopped so often, one time after the other, is taken to stay so. */
const STOPPED_TIMES = 4;
const LOOK_EVERY_MS = 500;

export type AwaitedState = "here" | "still";

export interface NeighbourOptions {
  /** Of all sockets. */
  readonly folder: string;
  readonly name: string;
  readonly env: Env;
  /** Whether who is about to open under this name waits for this process. */
  readonly isForLater: (name: string) => boolean;
  readonly onNews: () => void;
}

export class Neighbour {
  readonly name: string;
  readonly #folder: string;
  readonly #env: Env;
  readonly #isForLater: (name: string) => boolean;
  readonly #onNews: () => void;
  #state: "unknown" | "opening" | AwaitedState | "dismissed" = "unknown";
  #isAsked = false;
  #socket: Socket;
  #timer: Timer | null = null;
  #lookTimer: Timer | null = null;
  #timesStopped = 0;
  #waiting: (() => void)[] = [];

  constructor({ folder, name, env, isForLater, onNews }: NeighbourOptions) {
    this.#folder = folder;
    this.name = name;
    this.#env = env;
    this.#isForLater = isForLater;
    this.#onNews = onNews;
    this.#socket = this.#connect();
    this.#lookLater();
  }

  /** One that has ended is there, and stands still; and so does one that opens later, or that has opened and is stopped. */
  is(state: AwaitedState): boolean {
    return this.#state === "still" || this.#state === state;
  }

  async becomes(state: AwaitedState): Promise<void> {
    while (!this.is(state)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  ask(): void {
    this.#isAsked = true;
    if (this.#state === "here") this.#socket.write(`${STAND_STILL}\n`);
  }

  dismiss(): void {
    this.#state = "dismissed";
    this.#timer?.cancel();
    this.#lookTimer?.cancel();
    this.#socket.destroy();
  }

  get pid(): string {
    return this.name.split("-")[1] ?? "";
  }

  #lookLater(): void {
    this.#lookTimer = this.#env.timer(LOOK_EVERY_MS, () => {
      const isSafe = existsSync(join(this.#folder, openMarkOf(this.name))) && isStopped(this.pid);
      this.#timesStopped = isSafe ? this.#timesStopped + 1 : 0;
      if (this.#timesStopped >= STOPPED_TIMES) this.#become("still");
      else this.#lookLater();
    });
  }

  #connect(): Socket {
    const socket = withSocketPath(this.#folder, this.name, (path) => createConnection(path));
    let hasEnded = false;
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#hear(line);
    });
    socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      hasEnded = code === "ECONNREFUSED" || code === "ENOENT";
      // The end of its name is like no other's, so nobody else can have taken it.
      if (hasEnded) removeFromDoor(this.#folder, this.name);
    });
    socket.once("close", () => this.#lose(hasEnded));
    return socket;
  }

  #hear(line: string): void {
    const [word = "", name = ""] = line.split(":");
    this.#timesStopped = 0;
    if (word === STANDS_STILL) this.#become("still");
    // It may have taken a higher number since it was found.
    else if (word === OPENING) this.#become(this.#isForLater(name) ? "still" : "opening");
    else if (word === HERE) {
      this.#become("here");
      if (this.#isAsked) this.#socket.write(`${STAND_STILL}\n`);
    }
  }

  /**
   * It may be that it has ended or closed the store; but who has no descriptor left drops connections as well, and writes.
   * A further one tells. Who has once stood still does not drop it.
   */
  #lose(hasEnded: boolean): void {
    if (this.#state === "dismissed" || this.#state === "still") return;
    if (hasEnded) this.#become("still");
    else {
      this.#state = "unknown";
      this.#timer = this.#env.timer(TRY_AGAIN_MS, () => {
        this.#socket = this.#connect();
      });
    }
  }

  #become(state: "opening" | AwaitedState): void {
    if (this.#state === "dismissed") return;
    this.#state = state;
    this.#onNews();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

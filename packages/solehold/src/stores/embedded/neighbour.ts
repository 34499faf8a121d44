/** Another process that has the store open or is about to, seen from one that opens it: see door.ts. */
import { rmSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import type { Env, Timer } from "../../env/index.ts";
import { withSocketPath } from "./socket-path.ts";

/** What it says: that it is about to open the store, that it has it open, and when it was asked to, that it stands still. */
export const OPENING = "o";
export const HERE = "h";
export const STANDS_STILL = "s";
const STAND_STILL = "?";

const TRY_AGAIN_MS = 20;

export type AwaitedState = "here" | "still";

export class Neighbour {
  readonly name: string;
  readonly #folder: string;
  readonly #env: Env;
  readonly #onNews: () => void;
  #state: "unknown" | "opening" | AwaitedState | "dismissed" = "unknown";
  #isAsked = false;
  #socket: Socket;
  #timer: Timer | null = null;
  #waiting: (() => void)[] = [];

  constructor(folder: string, name: string, env: Env, onNews: () => void) {
    this.#folder = folder;
    this.name = name;
    this.#env = env;
    this.#onNews = onNews;
    this.#socket = this.#connect();
  }

  /** One that has ended is there, and stands still. */
  is(state: AwaitedState): boolean {
    return this.#state === "still" || this.#state === state;
  }

  async becomes(state: AwaitedState): Promise<void> {
    while (!this.is(state)) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  ask(): void {
    this.#isAsked = true;
    if (this.#state === "here") this.#socket.write(STAND_STILL);
  }

  dismiss(): void {
    this.#state = "dismissed";
    this.#timer?.cancel();
    this.#socket.destroy();
  }

  #connect(): Socket {
    const socket = withSocketPath(this.#folder, this.name, (path) => createConnection(path));
    let hasEnded = false;
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      for (const word of String(text)) this.#hear(word);
    });
    socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      hasEnded = code === "ECONNREFUSED" || code === "ENOENT";
      // The end of its name is like no other's, so nobody else can have taken it.
      if (hasEnded) rmSync(join(this.#folder, this.name), { force: true });
    });
    socket.once("close", () => this.#lose(hasEnded));
    return socket;
  }

  #hear(word: string): void {
    if (word === OPENING) this.#become("opening");
    else if (word === STANDS_STILL) this.#become("still");
    else if (word === HERE) {
      this.#become("here");
      if (this.#isAsked) this.#socket.write(STAND_STILL);
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

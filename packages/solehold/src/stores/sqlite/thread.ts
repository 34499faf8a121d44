/**
 * One thread as the store sees it: requests and their replies. It keeps the process from ending only while somebody
 * waits for a reply. A thread that ended by itself fails all requests, then and later.
 */
import { Worker } from "node:worker_threads";
import { StoreError } from "../../store/index.ts";
import { storeFailure } from "./failure.ts";
import type { Requests, ThreadFailure } from "./protocol.ts";

interface Reply {
  readonly id: number;
  readonly reply?: unknown;
  readonly failure?: ThreadFailure;
}

interface Waiting {
  resolve(reply: unknown): void;
  reject(error: Error): void;
}

export class Thread {
  readonly #folder: string;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #isClosing = false;
  #lastId = 0;
  #loss: StoreError | null = null;

  /** `origin` tells the commits of this store object from those of others. */
  constructor(folder: string, origin: number) {
    this.#folder = folder;
    this.#worker = new Worker(new URL("./sqlite-thread.js", import.meta.url), {
      workerData: { origin },
      // Node 22 calls SQLite experimental; and flags of this process may be about its own sources.
      execArgv: ["--no-warnings"],
    });
    this.#worker.unref();
    this.#worker.on("message", (message: Reply) => this.#onReply(message));
    this.#worker.on("error", (error) => this.#onLoss(error.message));
    this.#ended = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        this.#onLoss("it ended");
        resolve();
      });
    });
  }

  ask<Op extends keyof Requests>(op: Op, ask: Requests[Op]["ask"]): Promise<Requests[Op]["reply"]> {
    if (this.#loss !== null) return Promise.reject(this.#loss);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(id, { resolve: (reply) => resolve(reply as Requests[Op]["reply"]), reject });
      this.#worker.postMessage({ id, op, ask });
    });
  }

  /** Resolves when the thread has ended, and its files are closed. */
  async close(markMs: number | null): Promise<void> {
    this.#isClosing = true;
    if (this.#loss === null) await this.ask("close", { markMs }).catch(() => undefined);
    this.#worker.ref();
    await this.#ended;
  }

  #onReply({ id, reply, failure }: Reply): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if (failure === undefined) waiting?.resolve(reply);
    else waiting?.reject(storeFailure(failure, this.#folder));
  }

  #onLoss(why: string): void {
    if (this.#isClosing && this.#waiting.size === 0) return;
    const message = `a thread of the embedded store in '${this.#folder}' was lost (${why}): open the store again`;
    this.#loss ??= new StoreError("internal", message.replace(/\s+/g, " "), { outcome: "unknown" });
    for (const { reject } of this.#waiting.values()) reject(this.#loss);
    this.#waiting.clear();
  }
}

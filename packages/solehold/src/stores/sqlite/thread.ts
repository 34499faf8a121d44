/**
 * One thread as the store sees it: requests and their replies. It keeps the process from ending only while somebody
 * waits for a reply. A thread that ended by itself fails all requests, then and later.
 */
import { Worker } from "node:worker_threads";
import { StoreError } from "../../store/index.ts";
import { oneLine, storeFailure } from "./failure.ts";
import type { Requests, ThreadFailure } from "./protocol.ts";

interface Answer {
  readonly id: number;
  readonly reply?: unknown;
  readonly failure?: ThreadFailure;
}

export class Thread {
  readonly #folder: string;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve(reply: unknown): void; reject(error: Error): void }>();
  readonly #ended: Promise<void>;
  #lastId = 0;
  #isClosing = false;
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
    this.#worker.on("message", (answer: Answer) => this.#onAnswer(answer));
    this.#worker.on("error", (error) => this.#onLoss(error.message));
    this.#ended = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        this.#onLoss("it ended");
        resolve();
      });
    });
  }

  ask<Op extends keyof Requests>(
    op: Op,
    ...args: Parameters<Requests[Op]>
  ): Promise<ReturnType<Requests[Op]>> {
    if (this.#loss !== null) return Promise.reject(this.#loss);
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(id, { resolve: resolve as (reply: unknown) => void, reject });
      this.#worker.postMessage({ id, op, args });
    });
  }

  /** Resolves when the thread has ended, and its files are closed. */
  async close(markMs: number | null): Promise<void> {
    this.#isClosing = true;
    this.#worker.ref();
    this.#worker.postMessage({ id: 0, op: "close", args: [markMs] });
    await this.#ended;
  }

  #onAnswer({ id, reply, failure }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    // A watcher's look may be answered while close() waits: nothing else would keep the process alive until the end.
    if (this.#waiting.size === 0 && !this.#isClosing) this.#worker.unref();
    if (failure === undefined) waiting?.resolve(reply);
    else waiting?.reject(storeFailure(failure, this.#folder));
  }

  #onLoss(why: string): void {
    const message = `a thread of the embedded store in '${this.#folder}' was lost (${oneLine(why)}): open the store again`;
    this.#loss ??= new StoreError("internal", message, { outcome: "unknown" });
    for (const { reject } of this.#waiting.values()) reject(this.#loss);
    this.#waiting.clear();
  }
}

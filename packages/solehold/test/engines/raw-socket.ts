// A bare TCP client, and a look at the kernel's view of a process: what the tests of the engines see the effects with.
// Nothing of the engines' own code is used here, so a fault in it cannot hide itself.
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";

export class RawSocket {
  readonly #socket: Socket;
  #received = "";
  readonly #listeners = new Set<() => void>();
  /** Resolves when the connection is over: with the error's code, or "end" when it was closed in good order. */
  readonly closed: Promise<string>;
  #isClosed = false;

  static async open(port: number): Promise<RawSocket> {
    const socket = connect({ port, host: "127.0.0.1" });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new RawSocket(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay();
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      this.#received += chunk;
      for (const listener of this.#listeners) listener();
    });
    let ending = "end";
    socket.on("error", (error: NodeJS.ErrnoException) => {
      ending = error.code ?? error.message;
    });
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#isClosed = true;
        for (const listener of this.#listeners) listener();
        resolve(ending);
      });
    });
  }

  /** What arrived and was not taken yet. */
  get received(): string {
    return this.#received;
  }

  send(text: string): void {
    this.#socket.write(text, "latin1");
  }

  /** Takes the next `length` characters; rejects if the connection ends before. */
  take(length: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (this.#received.length >= length) {
          this.#listeners.delete(look);
          const taken = this.#received.slice(0, length);
          this.#received = this.#received.slice(length);
          resolve(taken);
        } else if (this.#isClosed) {
          this.#listeners.delete(look);
          reject(new Error(`closed after ${JSON.stringify(this.#received.slice(0, 100))}`));
        }
      };
      this.#listeners.add(look);
      look();
    });
  }

  /** Sends a Redis command and takes the reply that the test expects, so a wrong one shows in the assertion. */
  async command(text: string, expected: string): Promise<string> {
    this.send(`${text}\r\n`);
    return this.take(expected.length);
  }

  /** Tells the server that no more requests come, and goes on receiving. */
  finish(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }
}

export function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** The kernel's letter for the process: S sleeping, T stopped. undefined when it is gone or only waits to be reaped. */
export function processState(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const state = stat.slice(stat.lastIndexOf(")") + 2)[0];
    return state === "Z" ? undefined : state;
  } catch {
    return undefined;
  }
}

/** The children of a process, as the kernel lists them. */
export function childrenOf(pids: Iterable<number>, parent: number): number[] {
  return [...pids].filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === `${parent}`;
    } catch {
      return false;
    }
  });
}

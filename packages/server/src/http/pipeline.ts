/**
 * Requests that a client sends on one connection ahead of their answers. They begin one after the other, each in a turn of
 * its own, when the client has taken the answer before: HTTP allows no more for commands (RFC 9112, 9.3.2), and so a
 * client that does not read costs one answer. Too many of them end the connection: Node reads on while they wait.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Env } from "solehold/internal";

const MOST_WAITING = 32;

export class Pipelines {
  readonly #env: Env;
  /** Of connections with a request under way: those that wait for it. */
  readonly #waiting = new WeakMap<object, (() => void)[]>();

  constructor(env: Env) {
    this.#env = env;
  }

  /** Calls `begin` when it is its turn; never where the connection ends before. */
  enter({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
    // What was read together with the one too many is still handed over.
    if (socket.destroyed) return;
    const waiting = this.#waiting.get(socket);
    if (waiting !== undefined && waiting.length >= MOST_WAITING) {
      socket.destroy();
      return;
    }
    response.once("close", () => this.#next(socket));
    if (waiting !== undefined) {
      waiting.push(begin);
      return;
    }
    this.#waiting.set(socket, []);
    begin();
  }

  #next(socket: IncomingMessage["socket"]): void {
    const begin = this.#waiting.get(socket)?.shift();
    if (begin === undefined) this.#waiting.delete(socket);
    else this.#env.timer(0, () => void (socket.destroyed || begin()));
  }
}

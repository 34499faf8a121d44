/**
 * When requests begin. Those that a client sends on one connection ahead of their answers begin one after the other, when
 * the client has taken the answer before: HTTP allows no more for commands (RFC 9112, 9.3.2), and so a client that does not
 * read costs one answer. Too many of them end the connection: Node reads on while they wait.
 *
 * Over all connections a few begin in each turn of the event loop. Others, such as streams, come between.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Env, Timer } from "solehold/internal";

const MOST_WAITING = 32;
const BEGUN_IN_ONE_TURN = 8;

interface Request {
  readonly socket: IncomingMessage["socket"];
  readonly begin: () => void;
}

export class Pipelines {
  readonly #env: Env;
  /** Of connections with a request under way: those that wait for it. */
  readonly #waiting = new WeakMap<object, Request[]>();
  /** Those whose connection is free. */
  readonly #ready: Request[] = [];
  #begunInThisTurn = 0;
  #nextTurn: Timer | null = null;

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
      waiting.push({ socket, begin });
      return;
    }
    this.#waiting.set(socket, []);
    this.#ready.push({ socket, begin });
    this.#beginReady();
  }

  #next(socket: Request["socket"]): void {
    const request = this.#waiting.get(socket)?.shift();
    if (request === undefined) {
      this.#waiting.delete(socket);
      return;
    }
    // In a later turn: other connections come between.
    this.#ready.push(request);
    this.#planTurn();
  }

  #beginReady(): void {
    while (this.#begunInThisTurn < BEGUN_IN_ONE_TURN) {
      const request = this.#ready.shift();
      if (request === undefined) break;
      this.#begunInThisTurn += 1;
      if (!request.socket.destroyed) request.begin();
    }
    if (this.#begunInThisTurn > 0) this.#planTurn();
  }

  #planTurn(): void {
    this.#nextTurn ??= this.#env.timer(0, () => {
      this.#nextTurn = null;
      this.#begunInThisTurn = 0;
      this.#beginReady();
    });
  }
}

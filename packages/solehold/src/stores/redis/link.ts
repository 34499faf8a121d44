/**
 * One connection, with a time limit for each request. A request is sent once. If its reply does not come in time, or is
 * not its own, the connection is ended and the outcome is unknown; finding out is the caller's business.
 *
 * Replies have no names in Redis, only an order. Something in between that drops or doubles pieces would shift them. So
 * each script gets an id, with which its reply must begin and end, also when it failed. An error without one (the server
 * loads, or does not know the user) may be the reply to another request: it says nothing about what became of this one.
 */
import type { Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError, withDeadline } from "../../store/index.ts";
import { silenceError } from "../support/failures.ts";
import type { ConnectionEvents, RedisConnection, RedisDriver } from "./driver.ts";
import * as errors from "./errors.ts";
import type { ScriptCall } from "./scripts.ts";

export interface LinkOptions {
  readonly env: Env;
  readonly driver: RedisDriver;
  readonly timeoutMs: number;
}

export class RedisLink {
  readonly #options: LinkOptions;
  readonly #onEnd: () => void;
  #connection: RedisConnection | null = null;
  #hasEnded = false;
  #requests = 0;

  private constructor(options: LinkOptions, onEnd: () => void) {
    this.#options = options;
    this.#onEnd = onEnd;
  }

  /** Rejects with a StoreError. `onEnd` is called once, when nothing more can be sent. */
  static async open(options: LinkOptions, { onEnd, onMessage }: ConnectionEvents): Promise<RedisLink> {
    const link = new RedisLink(options, onEnd);
    const attempt = new AbortController();
    const connecting = options.driver.connect({ onEnd: () => link.end(), onMessage }, attempt.signal);
    // An attempt that took too long is given up, also when it succeeds just then.
    connecting.then((late) => link.#hasEnded && late.close()).catch(() => undefined);
    link.#connection = await link.#inTime(connecting, "not-applied").catch((error: unknown) => {
      attempt.abort();
      throw errors.storeErrorFrom(error, options.driver.address, "not-applied");
    });
    return link;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#connection?.close();
    this.#onEnd();
  }

  /** What the script replied, without the request's id. `outcome` is what is true if its reply does not come. */
  async run([script, keys, args]: ScriptCall, outcome: FailedOutcome): Promise<readonly unknown[]> {
    this.#requests += 1;
    const id = `r${this.#requests.toString(36)}`;
    const rest = [String(keys.length), ...keys, id, ...args];
    try {
      const call = (command: string, first: string): Promise<unknown> =>
        this.#inTime(
          this.#send((connection) => connection.call(command, [first, ...rest])),
          outcome,
        );
      const reply = await call("evalsha", script.sha).catch((error) => {
        // Should it have been carried out all the same, the writer recognises its own version.
        if (errors.isMissingScript(error)) return call("eval", script.source);
        throw error;
      });
      if (!Array.isArray(reply) || reply[0] !== id || reply.at(-1) !== id) {
        throw new Error("a reply did not belong to its request: something in between loses or repeats data");
      }
      if (reply[1] === "error") throw new errors.ScriptError(String(reply[2]));
      return reply.slice(1, -1);
    } catch (error) {
      // Without the request's id it may be of the server (it loads, it was cut off) or of another request.
      const isOwn = error instanceof StoreError || error instanceof errors.ScriptError;
      if (!isOwn || errors.isDemotion(error)) this.end();
      throw errors.storeErrorFrom(error, this.#options.driver.address, outcome);
    }
  }

  /** Any other request, which writes nothing. */
  async request(send: (connection: RedisConnection) => Promise<unknown>): Promise<unknown> {
    try {
      return await this.#inTime(this.#send(send), "not-applied");
    } catch (error) {
      if (!errors.isReply(error)) this.end();
      throw errors.storeErrorFrom(error, this.#options.driver.address, "not-applied");
    }
  }

  #send(send: (connection: RedisConnection) => Promise<unknown>): Promise<unknown> {
    if (this.#connection !== null && !this.#hasEnded) return send(this.#connection);
    const message = `Redis at ${this.#options.driver.address}: the connection was lost`;
    return Promise.reject(new StoreError("unreachable", message, { outcome: "not-applied" }));
  }

  /** A connection that does not answer is not worth keeping, and may be dead. */
  #inTime<Value>(promise: Promise<Value>, outcome: FailedOutcome): Promise<Value> {
    const { env, driver, timeoutMs } = this.#options;
    return withDeadline(env, timeoutMs, promise, () => {
      this.end();
      return silenceError(`Redis at ${driver.address}`, timeoutMs, outcome);
    });
  }
}

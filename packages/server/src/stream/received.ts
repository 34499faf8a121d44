/**
 * What a stream has received and not begun. Operations begin in portions, one in each turn of the event loop, so that a
 * message of thousands does not hold up the others.
 */
import { type Env, parseMessages, type Timer } from "solehold/internal";
import { BEGUN_IN_ONE_TURN } from "../commands/command-handler.ts";
import { isTooDeep, MAX_JSON_DEPTH } from "../protocol/json-depth.ts";

export interface ReceivedOptions {
  readonly env: Env;
  /** The most operations of one message. */
  readonly batchLimit: number;
  begin(operation: unknown, receivedMs: number): void;
  refuse(message: string): void;
  /** There are more or fewer than before. */
  onChange(): void;
}

interface Waiting {
  readonly operation: unknown;
  readonly receivedMs: number;
}

export class Received {
  readonly #options: ReceivedOptions;
  #waiting: Waiting[] = [];
  /** Set while the next portion is planned. */
  #next: Timer | null = null;

  constructor(options: ReceivedOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** `text`: one operation or an array of them. */
  add(text: string): void {
    const { env, batchLimit, refuse } = this.#options;
    const receivedMs = env.monotonicMs();
    const operations = isTooDeep(text) ? null : parseMessages(text);
    if (operations === null) {
      refuse(`must be JSON text: an object or an array, nested no deeper than ${MAX_JSON_DEPTH} levels`);
    } else if (operations.length > batchLimit) {
      refuse(`must hold at most ${batchLimit} operations: send several`);
    } else {
      for (const operation of operations) this.#waiting.push({ operation, receivedMs });
      if (this.#next === null) this.#begin();
    }
  }

  beginAll(): void {
    while (this.#waiting.length > 0) {
      this.#next?.cancel();
      this.#begin();
    }
  }

  clear(): void {
    this.#waiting = [];
  }

  #begin(): void {
    const { env, begin, onChange } = this.#options;
    this.#next = null;
    for (const { operation, receivedMs } of this.#waiting.splice(0, BEGUN_IN_ONE_TURN))
      begin(operation, receivedMs);
    if (this.#waiting.length > 0) this.#next = env.timer(0, () => this.#begin());
    onChange();
  }
}

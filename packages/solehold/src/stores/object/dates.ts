/**
 * The server's time of one call that took several requests: the latest of its replies. It is not later
 * than the end of the call, and not earlier than its beginning, to the second.
 */
import type { Dated } from "./port.ts";

export class Dates {
  #latestMs: number | null = null;

  get latestMs(): number | null {
    return this.#latestMs;
  }

  note(dateMs: number | null): void {
    if (dateMs !== null) this.#latestMs = Math.max(this.#latestMs ?? dateMs, dateMs);
  }

  noting<Reply extends Dated>(reply: Reply): Reply {
    this.note(reply.dateMs);
    return reply;
  }
}

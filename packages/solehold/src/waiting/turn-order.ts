/**
 * In which order the processes that wait for a key have their turns: that of their tickets, as this process saw them come.
 * No clock is compared. A ticket that everybody has seen is passed only by those that everybody saw before it, and by those
 * of a higher priority for a while (precedence.ts).
 *
 * A ticket's turn is spent when a grant names it. A ticket that was reserved for and did not come in time is passed over
 * until its process writes it again: a process that died costs one deadline.
 */
import type { WaitTicket } from "../executor/index.ts";
import { type InTurn, placeOf } from "./precedence.ts";

interface Entry extends InTurn {
  sinceMs: number;
  turn: number;
  readonly withinMs: number;
  state: "waiting" | "served" | "missed";
  /** On the monotonic clock: when its process last wrote it. */
  seenMs: number;
}

const PASSABLE: InTurn = { priority: -1, sinceMs: Number.POSITIVE_INFINITY };

/** Whom a release may reserve the key for. */
export interface DueTicket {
  readonly ticket: string;
  readonly withinMs: number;
}

/** As the record names it. */
export function ticketText({ id, turn }: Pick<WaitTicket, "id" | "turn">): string {
  return `${id}.${turn}`;
}

function parsed(ticket: string): { readonly id: string; readonly turn: number } {
  const dot = ticket.lastIndexOf(".");
  return { id: ticket.slice(0, dot), turn: Number(ticket.slice(dot + 1)) };
}

export class TurnOrder {
  /** In the order of their turns. */
  #entries = new Map<string, Entry>();

  /** A ticket was written, perhaps long ago. */
  onTicket(ticket: Omit<WaitTicket, "sinceMs">, nowMs: number): void {
    const { id, turn, withinMs, priority, waitedMs } = ticket;
    const known = this.#entries.get(id);
    // However new this process is to the key: the others count a ticket's wait from its beginning, too.
    const sinceMs = nowMs - waitedMs;
    const entry: Entry = { turn, withinMs, priority, state: "waiting", sinceMs, seenMs: nowMs };
    if (known === undefined || turn > known.turn) {
      this.#entries.delete(id);
      this.#insert(id, entry, this.#entries.size, sinceMs);
    } else if (turn === known.turn && known.state === "waiting" && priority > known.priority) {
      const from = [...this.#entries.keys()].indexOf(id);
      this.#entries.delete(id);
      this.#insert(id, { ...entry, sinceMs: known.sinceMs }, from, nowMs);
    } else if (turn === known.turn) {
      known.seenMs = nowMs;
      known.sinceMs = Math.min(known.sinceMs, sinceMs);
      if (known.state === "missed") known.state = "waiting";
    }
  }

  onGone(id: string): void {
    this.#entries.delete(id);
  }

  /** A grant named this ticket. */
  onServed(ticket: string, nowMs: number): void {
    const { id, turn } = parsed(ticket);
    const known = this.#entries.get(id);
    if (known !== undefined && known.turn > turn) return;
    const { withinMs = 0, seenMs = nowMs } = known ?? {};
    this.#entries.set(id, { turn, withinMs, priority: 0, state: "served", sinceMs: nowMs, seenMs });
  }

  /** The key was reserved for this ticket, and somebody else has it. */
  onMissed(ticket: string): void {
    const { id, turn } = parsed(ticket);
    const known = this.#entries.get(id);
    if (known?.turn === turn && known.state === "waiting") known.state = "missed";
  }

  /** Whether this ticket still waits for this turn. */
  isWaiting(ticket: string): boolean {
    const { id, turn } = parsed(ticket);
    const known = this.#entries.get(id);
    return known?.turn === turn && known.state === "waiting";
  }

  /** Those of other processes that come before this id; all of them when it does not wait. */
  before(id: string, nowMs: number, lifeMs: number): readonly DueTicket[] {
    const tickets: DueTicket[] = [];
    for (const [each, { turn, withinMs, state, seenMs }] of this.#entries) {
      if (each === id && state === "waiting") break;
      if (each !== id && state === "waiting" && nowMs - seenMs < lifeMs)
        tickets.push({ ticket: ticketText({ id: each, turn }), withinMs });
    }
    return tickets;
  }

  /** Whether another process has a ticket, also one that was served. */
  knowsOthers(id: string): boolean {
    return this.#entries.size > (this.#entries.has(id) ? 1 : 0);
  }

  /** Whether another process waits, before or after this id. */
  hasOthers(id: string, nowMs: number, lifeMs: number): boolean {
    for (const [each, { state, seenMs }] of this.#entries)
      if (each !== id && state === "waiting" && nowMs - seenMs < lifeMs) return true;
    return false;
  }

  /** `from`: where it would stand without a priority, `atMs`: when it came. It may pass whoever does not wait. */
  #insert(id: string, entry: Entry, from: number, atMs: number): void {
    const others = [...this.#entries];
    const ahead = others.map(([, each]) => (each.state === "waiting" ? each : PASSABLE));
    others.splice(placeOf(entry.priority, ahead, atMs, from), 0, [id, entry]);
    this.#entries = new Map(others);
  }

  /** Tickets of other processes that were not written for so long. */
  leftOver(id: string, nowMs: number, lifeMs: number): readonly string[] {
    return [...this.#entries].flatMap(([each, { seenMs }]) =>
      each !== id && nowMs - seenMs > lifeMs ? [each] : [],
    );
  }
}

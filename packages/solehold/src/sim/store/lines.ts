/**
 * The lines that the reference store keeps for those who wait for a key: a release tells the first in line, and nobody
 * else. They decide nothing. What they say may get lost on its way, and who was told may do nothing about it.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import type { StoredRecord } from "../../store/index.ts";

/** One who waits, as the store knows it. */
export interface LineMember {
  /** False once its connection is gone. */
  isListening(): boolean;
  tell(stored: StoredRecord): void;
}

interface Line {
  /** In the order of their tickets. */
  readonly waiting: Ticket[];
  told: { readonly member: LineMember; readonly atMs: number } | null;
}

interface Ticket {
  readonly number: number;
  readonly member: LineMember;
}

/** For so long newcomers leave the key to who was told. */
const GRACE_MS = 100;

export class StoreLines {
  readonly #lines = new Map<string, Line>();
  #tickets = 0;

  /**
   * Takes the place of that ticket, or one at the end; tells at once when the key is free and nobody was told just now.
   * Returns the ticket's number.
   */
  enter(
    key: LeaseKey,
    member: LineMember,
    before: number | null,
    stored: StoredRecord,
    nowMs: number,
  ): number {
    const line = this.#lineOf(key);
    const standing = line.waiting.find((ticket) => ticket.member === member);
    if (standing !== undefined) return standing.number;
    this.#tickets += 1;
    const ticket = { number: before ?? this.#tickets, member };
    line.waiting.push(ticket);
    line.waiting.sort((a, b) => a.number - b.number);
    const isPending = line.told !== null && nowMs - line.told.atMs < GRACE_MS;
    if (isFree(stored) && !isPending) this.#tell(line, ticket, stored, nowMs);
    return ticket.number;
  }

  /** "gone": if it had been told, the next one is. */
  leave(
    key: LeaseKey,
    member: LineMember,
    why: "served" | "gone",
    stored: StoredRecord,
    nowMs: number,
  ): void {
    const line = this.#lineOf(key);
    const wasTold = line.told?.member === member;
    this.#remove(line, member);
    if (why === "gone" && wasTold && isFree(stored)) this.#tellNext(line, stored, nowMs);
  }

  /** What stands there now was written just now. */
  written(key: LeaseKey, stored: StoredRecord, nowMs: number): void {
    const line = this.#lines.get(keyId(key));
    if (line === undefined || !isFree(stored)) return;
    // What is reserved for somebody is everybody's business: who it is for may stand anywhere.
    const isReserved = stored.kind === "found" && stored.record.handoff !== null;
    if (isReserved) for (const { member } of line.waiting) member.tell(stored);
    else this.#tellNext(line, stored, nowMs);
  }

  #tellNext(line: Line, stored: StoredRecord, nowMs: number): void {
    line.told = null;
    const next = line.waiting.find(({ member }) => member.isListening());
    if (next !== undefined) this.#tell(line, next, stored, nowMs);
  }

  #tell(line: Line, ticket: Ticket, stored: StoredRecord, nowMs: number): void {
    this.#remove(line, ticket.member);
    line.told = { member: ticket.member, atMs: nowMs };
    ticket.member.tell(stored);
  }

  #remove(line: Line, member: LineMember): void {
    const index = line.waiting.findIndex((ticket) => ticket.member === member);
    if (index >= 0) line.waiting.splice(index, 1);
  }

  #lineOf(key: LeaseKey): Line {
    const id = keyId(key);
    const line = this.#lines.get(id) ?? { waiting: [], told: null };
    this.#lines.set(id, line);
    return line;
  }
}

function isFree(stored: StoredRecord): boolean {
  return stored.kind !== "found" || stored.record.state !== "held";
}

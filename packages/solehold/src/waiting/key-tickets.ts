/**
 * This process's ticket for one key, and what it knows of the others'. It writes its ticket only when somebody else needs
 * to see it: while the key is held through this very queue and no other process waits, nobody does.
 *
 * It decides nothing, and nothing waits for it: where tickets fail, processes race for the key as they would without.
 */
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import {
  type LeaseExecutor,
  type OwnTicket,
  TICKET_LIFE_MS,
  type WaitTicket,
  type WaitTickets,
} from "../executor/index.ts";
import type { StoreEvent, StoreWatch } from "../store/index.ts";
import { type DueTicket, TurnOrder, ticketText } from "./turn-order.ts";

export interface KeyTicketsOptions {
  readonly env: Env;
  readonly next: LeaseExecutor;
  readonly tickets: WaitTickets;
  readonly key: LeaseKey;
  /** Another process has come to wait. */
  readonly onOther: () => void;
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** How long a key is kept for this process: an event, perhaps a read, and a write have to arrive. */
const RESERVED_MS = 250;
const LONGEST_RESERVED_MS = 2_000;
const ROUND_TRIPS = 3;
const REFRESH_MS = TICKET_LIFE_MS / 3;
/** Others may have been served, or written their ticket again, since they were seen last. */
const LIFE_MS = TICKET_LIFE_MS * 1.5;
/** How long the first in turn is given before the next one tries, when a key is free for anybody. */
const STEP_MS = 30;
const LONGEST_HOLD_BACK_MS = 250;

export class KeyTickets {
  readonly #options: KeyTicketsOptions;
  readonly #id: string;
  readonly #order = new TurnOrder();
  /** The turn that is waited for; 0 while the ticket is not wanted. */
  #wanted = 0;
  /** The turn that the stored ticket names; 0 when there is none, null when that is not known. */
  #stored: number | null = 0;
  #lastTurn = 0;
  /** The highest of those who wait here for this turn. */
  #priority = 0;
  #sinceMs: number | null = null;
  #writtenMs = 0;
  /** How long a call to the store takes, about. */
  #roundTripMs = 0;
  #isSyncing = false;
  #isClosed = false;
  #watch: Promise<StoreWatch | null> | null = null;
  /** By name of the slot: the ticket that it was last seen to be reserved for. */
  readonly #reserved = new Map<string, string>();
  /** The same for releases that are under way. */
  readonly #promised = new Map<string, string>();

  constructor(options: KeyTicketsOptions) {
    this.#options = options;
    this.#id = randomId(options.env);
  }

  /** What an acquire of this process presents; the empty string without a ticket. */
  get own(): string {
    return this.#wanted === 0 ? "" : ticketText({ id: this.#id, turn: this.#wanted });
  }

  /** Whether other processes take turns at the key. */
  get knowsOthers(): boolean {
    return this.#order.knowsOthers(this.#id);
  }

  /** Whether another process waits. */
  get hasOthers(): boolean {
    return this.#order.hasOthers(this.#id, this.#nowMs(), LIFE_MS);
  }

  /** The ticket of another process whose turn comes before this process's, and that has no slot yet; null without one. */
  dueFor(slot: LeaseKey): DueTicket | null {
    const taken = new Set(this.#reserved.values());
    for (const [name, ticket] of this.#promised) if (name !== slot.name) taken.add(ticket);
    const before = this.#order.before(this.#id, this.#nowMs(), LIFE_MS);
    return before.find(({ ticket }) => !taken.has(ticket)) ?? null;
  }

  /** A release that reserves this slot is under way: until it is answered the next slot is for the next ticket. */
  promise({ name }: LeaseKey, { ticket }: DueTicket, released: Promise<unknown>): void {
    this.#promised.set(name, ticket);
    const forget = (): void => void this.#promised.delete(name);
    released.then(forget, forget);
  }

  /** How long to leave a free key to those who come first. */
  get holdBackMs(): number {
    const ahead = this.#order.before(this.#id, this.#nowMs(), LIFE_MS).length;
    return Math.min(LONGEST_HOLD_BACK_MS, ahead * STEP_MS);
  }

  /** Learns of the others. Resolves once it knows those that are there, or cannot. */
  async open(): Promise<void> {
    const { next, tickets, key } = this.#options;
    this.#watch ??= next.watch(tickets.scopeOf(key), (event) => this.#onEvent(event)).catch(() => null);
    await this.#watch;
    await this.#list();
  }

  /** Somebody waits here, with this priority at most; `isNeeded` when another process has to know. Called again and again while that is so. */
  want(isNeeded: boolean, priority: number): void {
    if (this.#isClosed) return;
    const isWaiting = this.#wanted > 0 && !this.#isSpent();
    if (!isWaiting && !isNeeded && !this.hasOthers) return;
    if (!isWaiting) {
      this.#lastTurn += 1;
      this.#wanted = this.#lastTurn;
      this.#sinceMs = null;
      this.#priority = priority;
      this.#order.onTicket({ ...this.#ticket(this.#wanted), waitedMs: 0 }, this.#nowMs());
    } else if (priority > this.#priority) {
      this.#priority = priority;
      this.#order.onTicket({ ...this.#ticket(this.#wanted), waitedMs: 0 }, this.#nowMs());
      this.#stored = null;
    } else if (this.#nowMs() - this.#writtenMs > REFRESH_MS) this.#stored = null;
    this.#sync();
  }

  /** Nobody waits here any more. A ticket that was served stays: the record of the lease says so, or the next is written over it. */
  unwant(): void {
    if (!this.#isSpent()) this.withdraw();
  }

  /**
   * This process does not come back at once. Those who come later did not see that its ticket was served, and would reserve
   * for it in vain.
   */
  withdraw(): void {
    if (this.#wanted === 0) return;
    if (!this.#isSpent()) this.#order.onGone(this.#id);
    this.#wanted = 0;
    this.#sync();
  }

  close(): void {
    this.#isClosed = true;
    this.#wanted = 0;
    this.#sync();
    this.#watch?.then((watch) => watch?.close()).catch(() => undefined);
  }

  /** The record that stands under the key. */
  onRecord({ key, state, ticket, reservation }: LeaseRecord): void {
    if (state === "held") {
      const reserved = this.#reserved.get(key.name) ?? ticket;
      if (reserved !== ticket) this.#order.onMissed(reserved);
      if (ticket !== "") this.#order.onServed(ticket, this.#nowMs());
      this.#reserved.delete(key.name);
    } else if (reservation !== null) this.#reserved.set(key.name, reservation.ticket);
  }

  #isSpent(): boolean {
    return !this.#order.isWaiting(this.own);
  }

  /** Makes the stored ticket what is wanted, one write at a time. */
  #sync(): void {
    if (this.#isSyncing || this.#stored === this.#wanted) return;
    this.#isSyncing = true;
    const done = this.#write().finally(() => {
      this.#isSyncing = false;
    });
    this.#options.inBackground(done);
  }

  /** A write that fails is tried again when the queue next looks. */
  async #write(): Promise<void> {
    const { tickets, key } = this.#options;
    try {
      while (this.#stored !== this.#wanted) {
        const turn = this.#wanted;
        const priority = this.#priority;
        this.#stored = null;
        this.#writtenMs = this.#nowMs();
        if (turn === 0) await tickets.remove(key, this.#id);
        else this.#sinceMs = await tickets.put(key, this.#ticket(turn), this.#sinceMs);
        this.#measure(this.#writtenMs);
        if (turn === 0 || priority === this.#priority) this.#stored = turn;
      }
      this.#removeLeftOver();
    } catch {
      // Without its ticket this process waits as if nobody reserved for it.
    }
  }

  #removeLeftOver(): void {
    const { tickets, key, inBackground } = this.#options;
    for (const id of this.#order.leftOver(this.#id, this.#nowMs(), LIFE_MS * 2)) {
      this.#order.onGone(id);
      inBackground(tickets.remove(key, id));
    }
  }

  async #list(): Promise<void> {
    const { tickets, key } = this.#options;
    const startedMs = this.#nowMs();
    const listed = await tickets.list(key).catch(() => []);
    this.#measure(startedMs);
    for (const ticket of listed) this.#seen(ticket);
  }

  #seen(ticket: WaitTicket): void {
    if (ticket.id === this.#id) return;
    this.#order.onTicket(ticket, this.#nowMs());
    this.#options.onOther();
  }

  #ticket(turn: number): OwnTicket {
    const withinMs = Math.ceil(this.#roundTripMs * ROUND_TRIPS);
    const reservedMs = Math.min(LONGEST_RESERVED_MS, Math.max(RESERVED_MS, withinMs));
    return { id: this.#id, turn, withinMs: reservedMs, priority: this.#priority };
  }

  /** A call to the store has been answered. */
  #measure(startedMs: number): void {
    const weight = this.#roundTripMs === 0 ? 1 : 0.3;
    this.#roundTripMs += (this.#nowMs() - startedMs - this.#roundTripMs) * weight;
  }

  #onEvent(event: StoreEvent): void {
    const ticket = this.#options.tickets.read(event);
    if (ticket === null) this.#options.inBackground(this.#list());
    else if (ticket.turn !== null) this.#seen(ticket);
    else if (ticket.id !== this.#id) this.#order.onGone(ticket.id);
    else if (this.#wanted > 0 && !this.#isSyncing) {
      // Somebody took this process for dead.
      this.#stored = 0;
      this.#sync();
    }
  }

  #nowMs(): number {
    return this.#options.env.monotonicMs();
  }
}

/**
 * The waiters of each key in the order of asking, as the workload knows it: to notice that the head of a queue died or gave
 * up while others waited behind it. Where no server keeps one queue for all, every process has its own.
 */
import { keyId, type LeaseKey } from "solehold/internal";

export interface Ticket {
  readonly process: string;
  readonly queue: string;
}

export class WaiterQueues {
  readonly #scope: "process" | "world";
  readonly #onHeadLost: () => void;
  readonly #queues = new Map<string, Ticket[]>();

  constructor(scope: "process" | "world", onHeadLost: () => void) {
    this.#scope = scope;
    this.#onHeadLost = onHeadLost;
  }

  get empty(): boolean {
    return [...this.#queues.values()].every((queue) => queue.length === 0);
  }

  join(process: string, key: LeaseKey): Ticket {
    const queue = this.#scope === "world" ? keyId(key) : `${process} ${keyId(key)}`;
    const ticket = { process, queue };
    this.#queues.set(queue, [...(this.#queues.get(queue) ?? []), ticket]);
    return ticket;
  }

  served(ticket: Ticket): void {
    this.#remove([ticket]);
  }

  gaveUp(ticket: Ticket): void {
    this.#lose([ticket]);
  }

  died(process: string): void {
    this.#lose([...this.#queues.values()].flat().filter((ticket) => ticket.process === process));
  }

  #lose(tickets: readonly Ticket[]): void {
    const heads = tickets.filter((ticket) => this.#queues.get(ticket.queue)?.[0] === ticket);
    this.#remove(tickets);
    for (const { queue } of heads) if ((this.#queues.get(queue) ?? []).length > 0) this.#onHeadLost();
  }

  #remove(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) {
      const left = (this.#queues.get(ticket.queue) ?? []).filter((each) => each !== ticket);
      this.#queues.set(ticket.queue, left);
    }
  }
}

/**
 * Who waits for which key, in the order of asking, as the workload knows it: to tell when somebody at the
 * head of a line died or gave up while others stood behind it. Where no server keeps one line for all, every
 * process has its own.
 */
import { keyId, type LeaseKey } from "solehold/internal";

export interface Ticket {
  readonly process: string;
  readonly line: string;
}

export class WaiterLines {
  readonly #scope: "process" | "world";
  readonly #onHeadLost: () => void;
  readonly #lines = new Map<string, Ticket[]>();

  constructor(scope: "process" | "world", onHeadLost: () => void) {
    this.#scope = scope;
    this.#onHeadLost = onHeadLost;
  }

  get empty(): boolean {
    return [...this.#lines.values()].every((line) => line.length === 0);
  }

  join(process: string, key: LeaseKey): Ticket {
    const line = this.#scope === "world" ? keyId(key) : `${process} ${keyId(key)}`;
    const ticket = { process, line };
    this.#lines.set(line, [...(this.#lines.get(line) ?? []), ticket]);
    return ticket;
  }

  served(ticket: Ticket): void {
    this.#remove([ticket]);
  }

  gaveUp(ticket: Ticket): void {
    this.#lose([ticket]);
  }

  died(process: string): void {
    this.#lose([...this.#lines.values()].flat().filter((ticket) => ticket.process === process));
  }

  #lose(tickets: readonly Ticket[]): void {
    const heads = tickets.filter((ticket) => this.#lines.get(ticket.line)?.[0] === ticket);
    this.#remove(tickets);
    for (const { line } of heads) if ((this.#lines.get(line) ?? []).length > 0) this.#onHeadLost();
  }

  #remove(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) {
      const left = (this.#lines.get(ticket.line) ?? []).filter((each) => each !== ticket);
      this.#lines.set(ticket.line, left);
    }
  }
}

/**
 * Messages between machines. Each leg of an exchange is sent on its own, so a request can arrive while its
 * reply is lost. A link can lose, double and delay messages (and so reorder them), be cut in one direction,
 * or clogged: then its messages wait and come out in any order when it is unclogged.
 */
import type { Machine } from "./machine.ts";
import type { RandomStream } from "./random.ts";
import type { SentMessage, World } from "./world.ts";

export interface NetworkOptions {
  readonly delayMs: number;
  readonly lossRate: number;
  readonly duplicateRate: number;
  readonly slowRate: number;
  /** A slow message takes up to this much longer. */
  readonly slowMs: number;
}

export class Network {
  readonly #world: World;
  readonly #options: NetworkOptions;
  readonly #cut = new Set<string>();
  readonly #delays = new Map<string, RandomStream>();
  readonly #cloggedUntilMs = new Map<string, number>();
  readonly #distances = new Map<Machine, number>();
  #healed = false;

  constructor(world: World, options: NetworkOptions) {
    this.#world = world;
    this.#options = options;
  }

  cut(from: Machine, to: Machine): void {
    if (this.#healed) return;
    this.#world.note(from.name, "cut", () => `to ${to.name}`);
    this.#cut.add(linkOf(from, to));
  }

  restore(from: Machine, to: Machine): void {
    if (this.#cut.delete(linkOf(from, to))) this.#world.note(from.name, "restored", () => `to ${to.name}`);
  }

  clog(from: Machine, to: Machine, forMs: number): void {
    if (this.#healed) return;
    this.#world.note(from.name, "clogged", () => `to ${to.name} for ${Math.round(forMs)} ms`, forMs);
    this.#cloggedUntilMs.set(linkOf(from, to), this.#world.nowMs + forMs);
  }

  /** Every message from and to this machine takes so much longer. */
  distance(machine: Machine, ms: number): void {
    this.#distances.set(machine, ms);
  }

  /** From now on every message arrives, soon. */
  heal(): void {
    this.#healed = true;
    this.#cut.clear();
    this.#cloggedUntilMs.clear();
  }

  /** Calls `deliver` at the receiver: once, never, or twice. "lost" when it will certainly not arrive. */
  send(from: Machine, to: Machine, label: string, deliver: () => void): "sent" | "lost" {
    const { choices } = this.#world;
    const { lossRate, duplicateRate } = this.#options;
    const link = linkOf(from, to);
    const lost =
      this.#cut.has(link) ||
      (lossRate > 0 && !this.#healed && choices.fires(`loss ${label} ${link}`, lossRate));
    if (lost) {
      this.#world.note(from.name, "lost", () => `${label} to ${to.name}`);
      this.#record(from, to, label, true);
      return "lost";
    }
    const distanceMs = (this.#distances.get(from) ?? 0) + (this.#distances.get(to) ?? 0);
    this.#deliverLater(from, to, label, deliver, distanceMs);
    if (duplicateRate > 0 && !this.#healed && choices.fires(`duplicate ${label} ${link}`, duplicateRate))
      this.#deliverLater(from, to, `${label} again`, deliver, distanceMs);
    return "sent";
  }

  #record(from: Machine, to: Machine, label: string, lost: boolean): SentMessage | null {
    const { messages, nowMs } = this.#world;
    if (messages === null) return null;
    const message = { from: from.name, to: to.name, label, sentMs: nowMs, arrivedMs: null, lost };
    messages.push(message);
    return message;
  }

  #deliverLater(from: Machine, to: Machine, label: string, deliver: () => void, distanceMs: number): void {
    const link = linkOf(from, to);
    const { choices, nowMs } = this.#world;
    const { delayMs, slowRate, slowMs } = this.#options;
    const random = this.#delays.get(link) ?? choices.stream(`delay ${link}`);
    this.#delays.set(link, random);
    const usualMs = Math.min(random.exponential(delayMs), delayMs * 8);
    const slowness = random.fraction();
    const extraMs =
      slowRate > 0 && !this.#healed && choices.fires(`slow ${label} ${link}`, slowRate)
        ? slowness * slowMs
        : 0;
    const cloggedUntilMs = this.#cloggedUntilMs.get(link) ?? 0;
    const atMs = Math.max(nowMs + distanceMs + usualMs + extraMs, cloggedUntilMs);
    const message = this.#record(from, to, label, false);
    this.#world.schedule(atMs, to, label, () => {
      if (message !== null) message.arrivedMs = this.#world.nowMs;
      deliver();
    });
  }
}

function linkOf(from: Machine, to: Machine): string {
  return `${from.name}>${to.name}`;
}

/**
 * One direction of a connection: what is sent arrives once and in order, or the connection is broken. A lost
 * message is sent again after a while, or it is the end of the connection; nothing that follows it overtakes it.
 */
import type { Machine } from "../world/machine.ts";
import type { Wire } from "./server-address.ts";

export interface PipeOptions<Message> {
  readonly wire: Wire;
  readonly from: Machine;
  readonly to: Machine;
  readonly label: string;
  readonly deliver: (message: Message) => void;
  readonly onBroken: () => void;
}

export class Pipe<Message> {
  readonly #options: PipeOptions<Message>;
  readonly #early = new Map<number, Message>();
  #sent = 0;
  #due = 0;

  constructor(options: PipeOptions<Message>) {
    this.#options = options;
  }

  send(message: Message): void {
    this.#transmit(this.#sent, message);
    this.#sent += 1;
  }

  #transmit(place: number, message: Message): void {
    const { wire, from, to, label, onBroken } = this.#options;
    const { world, network, noticeMs } = wire;
    if (network.send(from, to, label, () => this.#arrive(place, message)) === "sent") return;
    const random = world.choices.stream("lost segments");
    if (random.chance(0.5)) {
      onBroken();
      return;
    }
    const atMs = world.nowMs + random.fraction() * noticeMs;
    world.schedule(atMs, from, "send again", () => this.#transmit(place, message));
  }

  #arrive(place: number, message: Message): void {
    if (place < this.#due) return;
    this.#early.set(place, message);
    for (let next = this.#early.get(this.#due); next !== undefined; next = this.#early.get(this.#due)) {
      this.#early.delete(this.#due);
      this.#due += 1;
      this.#options.deliver(next);
    }
  }
}

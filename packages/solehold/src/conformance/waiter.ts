/** One client's place in the line for a key, what it was told so far, and waiting for its turn. Bounded in time. */
import { ok } from "node:assert/strict";
import { keyId, type LeaseKey } from "../core/index.ts";
import type { LeaseStore, QueueTicket, StoreEvent } from "../store/index.ts";
import type { StoreBench } from "./store-fixture.ts";

export type Turn = Extract<StoreEvent, { kind: "changed" }>;

export class Waiter {
  readonly #bench: StoreBench;
  readonly #name: string;
  readonly #key: LeaseKey;
  readonly #turns: Turn[] = [];
  /** Keys that it never asked about. */
  readonly #strays: string[] = [];
  #place: QueueTicket | null = null;
  #told: (() => void) | null = null;

  private constructor(bench: StoreBench, name: string, key: LeaseKey) {
    this.#bench = bench;
    this.#name = name;
    this.#key = key;
  }

  /** It has a place, which is not entered yet. */
  static async stand(bench: StoreBench, name: string, store: LeaseStore, key: LeaseKey): Promise<Waiter> {
    if (store.joinQueue === undefined) throw new Error("the store keeps no queues");
    const waiter = new Waiter(bench, name, key);
    waiter.#place = await store.joinQueue(key, (event) => waiter.#note(event));
    return waiter;
  }

  async enter(): Promise<void> {
    await this.#place?.enter();
  }

  leave(why: "served" | "gone"): void {
    this.#place?.leave(why);
  }

  async close(): Promise<void> {
    await this.#place?.close();
  }

  /** How often it was told that the key is free. */
  get turns(): number {
    ok(this.#strays.length === 0, `${this.#name} in line was told of other keys: ${this.#strays.join(", ")}`);
    return this.#turns.length;
  }

  /** Resolves with the last turn once there were so many. */
  async turn(count: number): Promise<Turn> {
    while (this.turns < count) {
      const told = new Promise<void>((resolve) => {
        this.#told = resolve;
      });
      await this.#bench.inTime(`${this.#name} in line was never told of turn ${count}`, told);
    }
    const last = this.#turns.at(-1);
    if (last === undefined) throw new Error("there was no turn");
    return last;
  }

  #note(event: StoreEvent): void {
    if (event.kind === "reset") {
      // A turn may have been missed: who waits makes sure that it still has its place.
      void this.enter();
      return;
    }
    if (keyId(event.key) === keyId(this.#key)) this.#turns.push(event);
    else this.#strays.push(keyId(event.key));
    this.#told?.();
  }
}

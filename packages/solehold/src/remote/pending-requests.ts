/**
 * The requests of a stream that have no answer yet. Numbers are given in a row and most answers come soon, so a
 * ring finds a request by its number; the few that wait for long stand in a map beside it. A map that everything
 * passes through would be copied again and again, and its old copies would keep alive what had passed.
 */
import type { StoreError } from "../store/index.ts";
import type { RemoteAnswer } from "./transport.ts";

export interface PendingRequest {
  readonly id: number;
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly resolve: (answer: RemoteAnswer) => void;
  readonly reject: (error: StoreError) => void;
  /** Ends its interest in the caller's signal; null without one. */
  readonly stopListening: (() => void) | null;
}

const FIRST_SLOTS = 256;

export class PendingRequests {
  #ring = emptyRing(FIRST_SLOTS);
  readonly #patient = new Map<number, PendingRequest>();
  #inRing = 0;

  get size(): number {
    return this.#inRing + this.#patient.size;
  }

  add(request: PendingRequest): void {
    // A ring that is half full is too small for all that are under way at once.
    if (this.#inRing * 2 >= this.#ring.length) this.#grow();
    const slot = request.id % this.#ring.length;
    const before = this.#ring[slot] ?? null;
    if (before !== null) this.#patient.set(before.id, before);
    else this.#inRing += 1;
    this.#ring[slot] = request;
  }

  has(id: number): boolean {
    return this.#inSlot(id) !== null || this.#patient.has(id);
  }

  /** Takes it out; null when it is not there (any more). */
  take(id: number): PendingRequest | null {
    const found = this.#inSlot(id);
    if (found === null) return this.#takePatient(id);
    this.#ring[id % this.#ring.length] = null;
    this.#inRing -= 1;
    return found;
  }

  all(): readonly PendingRequest[] {
    return [...this.#patient.values(), ...this.#ring.filter((slot) => slot !== null)];
  }

  #inSlot(id: number): PendingRequest | null {
    const found = this.#ring[id % this.#ring.length] ?? null;
    return found?.id === id ? found : null;
  }

  #takePatient(id: number): PendingRequest | null {
    const found = this.#patient.get(id) ?? null;
    if (found !== null) this.#patient.delete(id);
    return found;
  }

  /** Distinct slots stay distinct in a ring of twice the length. */
  #grow(): void {
    const larger = emptyRing(this.#ring.length * 2);
    for (const request of this.#ring) if (request !== null) larger[request.id % larger.length] = request;
    this.#ring = larger;
  }
}

function emptyRing(slots: number): (PendingRequest | null)[] {
  return new Array<PendingRequest | null>(slots).fill(null);
}

/**
 * Floors keep fences growing for keys whose old records were collected: a key without a record starts
 * above its tenant's floor.
 *
 * A floor may be used for a while without reading it again, because the collector deletes a record only
 * after the floor that covers it has stood for a whole retention; `maxAgeMs` must be far below that.
 */
import { floorKey, type LeaseKey } from "../core/index.ts";
import type { StoredRecord } from "../store/index.ts";
import { BoundedMap } from "./bounded-map.ts";

interface KnownFloor {
  readonly generation: bigint;
  readonly sentMs: number;
}

export class Floors {
  readonly #known = new BoundedMap<KnownFloor>(1_000);
  readonly #maxAgeMs: number;

  constructor(options: { readonly maxAgeMs: number }) {
    this.#maxAgeMs = options.maxAgeMs;
  }

  /** The floor, if it was asked for recently enough; its age counts from before the question was sent. */
  recent(tenant: string, nowMs: number): bigint | null {
    const known = this.#known.get(tenant);
    return known !== undefined && nowMs - known.sentMs <= this.#maxAgeMs ? known.generation : null;
  }

  learn(tenant: string, stored: StoredRecord, sentMs: number): bigint {
    const generation = stored.kind === "found" ? stored.record.generation : 0n;
    this.#known.set(tenant, { generation, sentMs });
    return generation;
  }

  /** What to read for a key, in the order that makes an absence safe: the key first, then its floor. */
  static keysFor(key: LeaseKey): readonly LeaseKey[] {
    return [key, floorKey(key.tenant)];
  }
}

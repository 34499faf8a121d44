/**
 * Judging by observation, without trusting any clock but one's own: a version that stayed the same for a
 * whole ttl was not renewed in that time, so its holder's belief is over, whatever the record says.
 *
 * Counted from the RECEIPT of the first reply that showed the version (the holder may have written it at
 * the very moment before), on the observer's monotonic clock, widened by drift. It needs no second read:
 * the takeover is a conditional write on that same version, which fails if it moved in between.
 */
import { type DriftBound, keyId, type LeaseRecord } from "../core/index.ts";
import { BoundedMap } from "./bounded-map.ts";

interface Sighting {
  readonly version: string;
  readonly sinceMs: number;
}

export class Observations {
  readonly #sightings: BoundedMap<Sighting>;
  readonly #drift: DriftBound;

  constructor(options: { readonly drift: DriftBound; readonly capacity: number }) {
    this.#drift = options.drift;
    this.#sightings = new BoundedMap(options.capacity);
  }

  /** A reply received at `receivedMs` showed this version. */
  saw(record: LeaseRecord, version: string, receivedMs: number): void {
    const id = keyId(record.key);
    if (this.#sightings.get(id)?.version !== version)
      this.#sightings.set(id, { version, sinceMs: receivedMs });
  }

  /** Whether the version stood unchanged for as long as the record can bind anybody. */
  isOver(record: LeaseRecord, version: string, nowMs: number): boolean {
    const sighting = this.#sightings.get(keyId(record.key));
    if (sighting === undefined || sighting.version !== version) return false;
    const neededMs = bindingMs(record) * (1 + this.#drift.driftRatio) + this.#drift.tickMs;
    return nowMs - sighting.sinceMs >= neededMs;
  }
}

/** How long after its last write a record can bind anybody: its ttl, or the time left to a successor. */
function bindingMs(record: LeaseRecord): number {
  const { handoff, endedAtMs } = record;
  if (handoff !== null && endedAtMs !== null) return handoff.deadlineMs - endedAtMs;
  return record.ttlMs;
}

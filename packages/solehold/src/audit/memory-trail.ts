/**
 * A trail in memory: for tests, for embedding, and for looking at the recent past. It keeps the last
 * `capacity` entries and counts those that it dropped; the chain runs on over the drops, so what is kept can be
 * verified from its first entry's `previousHash`. Nothing survives the process.
 */

import type { AuditQuery, AuditTrail, InvalidEvents } from "./audit-trail.ts";
import { acceptEvent, checkCount, matches, queryLimit } from "./audit-trail.ts";
import type { AuditEntry, AuditEvent, AuditHead } from "./entry.ts";
import { AuditError } from "./error.ts";
import { encodeEvent, genesis, seal } from "./hash-chain.ts";

export interface MemoryAuditOptions {
  /** Entries kept. */
  readonly capacity: number;
  readonly trailId?: string;
  /** Default "refuse": `append` throws on a malformed event. */
  readonly invalidEvents?: InvalidEvents;
}

const MOST_ENTRIES = 10_000_000;

export class MemoryAuditTrail implements AuditTrail {
  readonly #capacity: number;
  readonly #invalidEvents: InvalidEvents;
  /** A ring: entry n lies at (n - 1) modulo capacity. */
  readonly #ring: AuditEntry[] = [];
  #head: AuditHead;
  #closed = false;

  constructor(options: MemoryAuditOptions) {
    this.#capacity = checkCount("capacity", options.capacity, { least: 1, most: MOST_ENTRIES });
    this.#invalidEvents = options.invalidEvents ?? "refuse";
    this.#head = genesis(options.trailId ?? "memory");
  }

  append(event: AuditEvent): void {
    if (this.#closed) throw new AuditError("AUDIT_CLOSED", "the audit trail is closed: append before close");
    const accepted = acceptEvent(event, this.#invalidEvents);
    const previousHash = this.#head.hash;
    const sequence = this.#head.sequence + 1;
    const { hash } = seal(encodeEvent(accepted), this.#head);
    this.#ring[(sequence - 1) % this.#capacity] = Object.freeze({
      sequence,
      previousHash,
      ...accepted,
      hash,
    });
    this.#head = { sequence, hash };
  }

  /** How many of the oldest entries were dropped for newer ones. */
  get dropped(): number {
    return this.#head.sequence - this.#ring.length;
  }

  async flush(): Promise<void> {}

  head(): AuditHead {
    return this.#head;
  }

  async query(query: AuditQuery = {}): Promise<readonly AuditEntry[]> {
    const limit = queryLimit(query);
    const step = query.order === "newest-first" ? -1 : 1;
    const oldest = Math.max(this.dropped, query.afterSequence ?? 0) + 1;
    const found: AuditEntry[] = [];
    let sequence = step === 1 ? oldest : this.#head.sequence;
    for (; sequence >= oldest && sequence <= this.#head.sequence && found.length < limit; sequence += step) {
      const entry = this.#ring[(sequence - 1) % this.#capacity];
      if (entry !== undefined && matches(entry, query)) found.push(entry);
    }
    return found;
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}

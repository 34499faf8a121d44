/** Counts what a process does with records that it knows from watch events alone. It changes nothing. */

import type { ConditionalWrite, LeaseKey, StoreEvent, WriteResult } from "solehold/internal";
import { keyId } from "solehold/internal";
import type { Situation } from "../oracles/oracle.ts";

export class EventHints {
  readonly #sometimes: (situation: Situation) => void;
  /** The version that an event showed last, and that no answer has shown since, by the id of its key. */
  readonly #versions = new Map<string, string>();

  constructor(sometimes: (situation: Situation) => void) {
    this.#sometimes = sometimes;
  }

  delivered(event: StoreEvent): void {
    if (event.kind === "changed" && event.stored?.kind === "found")
      this.#versions.set(keyId(event.key), event.stored.version);
  }

  /** An answer showed what is there. */
  forget(key: LeaseKey): void {
    this.#versions.delete(keyId(key));
  }

  tried({ key, expected }: ConditionalWrite, { kind }: WriteResult): void {
    const isHint = expected !== null && this.#versions.get(keyId(key)) === expected;
    this.forget(key);
    if (!isHint) return;
    if (kind === "applied") this.#sometimes("a lease was taken on a watch event alone");
    if (kind === "conflict") this.#sometimes("a try on a watch event alone came too late");
  }
}

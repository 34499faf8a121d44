/** Counts what a process does with records that it knows from news alone. It changes nothing. */
import { keyId, type LeaseKey } from "../../core/index.ts";
import type { ConditionalWrite, StoredRecord, WriteResult } from "../../store/index.ts";
import type { Situation } from "../oracles/oracle.ts";

export class ToldRecords {
  readonly #sometimes: (situation: Situation) => void;
  /** The version that news showed last, and that no answer has shown since, by the id of its key. */
  readonly #versions = new Map<string, string>();

  constructor(sometimes: (situation: Situation) => void) {
    this.#sometimes = sometimes;
  }

  /** Somebody who waits is about to try for the key on the strength of this. */
  lookedAt(key: LeaseKey, stored: StoredRecord): void {
    if (stored.kind === "found") this.#versions.set(keyId(key), stored.version);
  }

  /** An answer showed what is there. */
  forget(key: LeaseKey): void {
    this.#versions.delete(keyId(key));
  }

  tried({ key, expected }: ConditionalWrite, { kind }: WriteResult): void {
    const isTold = expected !== null && this.#versions.get(keyId(key)) === expected;
    this.forget(key);
    if (!isTold) return;
    if (kind === "applied") this.#sometimes("a lease was taken on the strength of news alone");
    if (kind === "conflict") this.#sometimes("a try on the strength of news alone came too late");
  }
}

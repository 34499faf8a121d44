/** What the tests of this store share: records, one-write helpers, and waiting for something to be true. */
import { keyId, type LeaseKey, type LeaseRecord } from "../../../src/core/index.ts";
import type { LeaseStore, StoredRecord, StoreEvent, WriteResult } from "../../../src/store/index.ts";

const INSTANT_MS = 1_750_000_000_000;
let lastNonce = 0;

export function key(name: string, tenant = "default"): LeaseKey {
  return { tenant, name };
}

export function record(of: LeaseKey, changes: Partial<LeaseRecord> = {}): LeaseRecord {
  lastNonce += 1;
  return {
    key: of,
    holder: "holder-1",
    purpose: "Operation",
    tokenHash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    term: 0n,
    generation: 1n,
    ttlMs: 30_000,
    grantedAtMs: INSTANT_MS,
    renewedAtMs: INSTANT_MS,
    expiresAtMs: INSTANT_MS + 30_000,
    endedAtMs: null,
    state: "held",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    minHoldUntilMs: null,
    lockDelayMs: 0,
    handoff: null,
    reservation: null,
    ticket: "",
    nonce: `nonce-${process.pid}-${lastNonce}`,
    idempotency: null,
    note: "",
    metadata: {},
    ...changes,
  };
}

export async function applyOne(
  store: LeaseStore,
  of: LeaseKey,
  expected: string | null,
  next: LeaseRecord | null,
): Promise<WriteResult> {
  const { results } = await store.apply([{ key: of, expected, next }]);
  return results[0]!;
}

/** The version of a record that is there now. */
export async function create(store: LeaseStore, of: LeaseKey, created = record(of)): Promise<string> {
  const result = await applyOne(store, of, null, created);
  if (result.kind !== "applied" || result.version === null) throw new Error(`not created: ${result.kind}`);
  return result.version;
}

export async function readOne(store: LeaseStore, of: LeaseKey): Promise<StoredRecord> {
  return (await store.read([of])).records[0]!;
}

/** The events of a watch, and waiting until they fulfil a condition. */
export class Events {
  readonly seen: StoreEvent[] = [];
  readonly #waiting = new Set<() => void>();

  readonly listener = (event: StoreEvent): void => {
    this.seen.push(event);
    for (const look of this.#waiting) look();
  };

  get resets(): number {
    return this.seen.filter(({ kind }) => kind === "reset").length;
  }

  names(): string[] {
    return this.seen.flatMap((event) => (event.kind === "changed" ? [keyId(event.key)] : []));
  }

  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!condition()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** Of every key of every tenant. */
export const EVERYTHING = { tenant: null, prefix: "" };

export async function watchAll(store: LeaseStore): Promise<Events> {
  const events = new Events();
  await store.watch?.(EVERYTHING, events.listener);
  return events;
}

/** Asks again until the answer is there; the test's own timeout is the limit. */
export async function eventually<Answer>(
  ask: () => Promise<Answer | undefined | null | false>,
): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What a call ended with, whatever it was. */
export function ended<Answer>(call: Promise<Answer>): Promise<unknown> {
  return call.then(
    (answer) => answer,
    (error: unknown) => error,
  );
}

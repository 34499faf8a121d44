/** Records and writes for the tests of the Redis store. */
import { randomBytes } from "node:crypto";
import type { LeaseRecord } from "../../src/core/index.ts";
import type { ConditionalWrite, LeaseStore, WriteResult } from "../../src/store/index.ts";

/** Above every floor that a server's clock can set, so that a restart does not matter to a test. */
export const HIGH = 10n ** 18n;

export function recordOf(name: string, changes: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    key: { tenant: "default", name },
    holder: "holder-1",
    purpose: "Operation",
    tokenHash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    term: 0n,
    generation: HIGH,
    ttlMs: 30_000,
    grantedAtMs: 1_750_000_000_000,
    renewedAtMs: 1_750_000_000_000,
    expiresAtMs: 1_750_000_030_000,
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
    nonce: randomBytes(16).toString("base64url"),
    idempotency: null,
    note: "",
    metadata: {},
    ...changes,
  };
}

export function writeOf(next: LeaseRecord, expected: string | null = null): ConditionalWrite {
  return { key: next.key, expected, next };
}

export async function applyOne(store: LeaseStore, write: ConditionalWrite): Promise<WriteResult> {
  return (await store.apply([write])).results[0]!;
}

/** The version of a record that must be created. */
export async function create(store: LeaseStore, next: LeaseRecord): Promise<string> {
  const result = await applyOne(store, writeOf(next));
  if (result.kind !== "applied" || result.version === null) throw new Error(`not created: ${result.kind}`);
  return result.version;
}

/** What a call rejected with. */
export async function rejection(
  call: Promise<unknown>,
): Promise<{ kind: string; outcome: string; message: string }> {
  return call.then(
    () => ({ kind: "answered", outcome: "", message: "" }),
    (error) => error,
  );
}

/** Waits for something that only asking can tell. The limit is for a busy machine: nothing is measured here. */
export async function until<T>(what: string, probe: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    let cause: unknown = "it was never so";
    const value = await probe().catch((error: unknown) => {
      cause = error;
      return null;
    });
    if (value !== null) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within 120 s`, { cause });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

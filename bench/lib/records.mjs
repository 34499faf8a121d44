// Lease records as the library writes them, for cases that speak to a store directly.
export const TTL_MS = 30_000;

let nonce = 0;

/** A live lease of `ttlMs`, as it stands after its grant. */
export function heldRecord(name, { nowMs = Date.now(), ttlMs = TTL_MS } = {}) {
  return {
    key: { tenant: "default", name },
    holder: "worker-17.internal:4711:5f3a",
    purpose: "Operation",
    tokenHash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    term: 0n,
    generation: 1n,
    ttlMs,
    grantedAtMs: nowMs,
    renewedAtMs: nowMs,
    expiresAtMs: nowMs + ttlMs,
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
    nonce: nextNonce(),
    idempotency: null,
    note: "",
    metadata: {},
  };
}

export function renewedRecord(record, nowMs = Date.now()) {
  return {
    ...record,
    renewedAtMs: nowMs,
    expiresAtMs: nowMs + record.ttlMs,
    renewals: record.renewals + 1,
    nonce: nextNonce(),
  };
}

/** The same lease, given back. */
export function releasedRecord(record, nowMs = Date.now()) {
  return { ...record, state: "released", endedAtMs: nowMs, nonce: nextNonce() };
}

/** Conditional writes in calls as large, and as many at once, as the store says. Returns the new versions. */
export async function applyAll(store, writes) {
  const { maxBatch, maxConcurrentCalls } = store.capabilities;
  const versions = new Array(writes.length);
  let start = 0;
  const lane = async () => {
    while (start < writes.length) {
      const from = start;
      start += maxBatch;
      const { results } = await store.apply(writes.slice(from, from + maxBatch));
      for (const [index, result] of results.entries()) {
        if (result.kind !== "applied") throw new Error(`not applied: ${result.kind}`);
        versions[from + index] = result.version;
      }
    }
  };
  await Promise.all(Array.from({ length: maxConcurrentCalls }, lane));
  return versions;
}

function nextNonce() {
  nonce += 1;
  return `nonce-${nonce}`.padEnd(22, "x");
}

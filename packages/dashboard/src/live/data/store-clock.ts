/**
 * The store's time in this page. Every live lease that arrives says what time it is there: its end minus what remains. An
 * answer is never early, so of several the latest time is the best; a better one replaces it after a while.
 */
const FRESH_MS = 60_000;

let offsetMs = 0;
let learnedMs = Number.NEGATIVE_INFINITY;

export function learnStoreTime(storeMs: number): void {
  const hereMs = Date.now();
  const candidate = storeMs - hereMs;
  if (candidate < offsetMs && hereMs - learnedMs < FRESH_MS) return;
  offsetMs = candidate;
  learnedMs = hereMs;
}

export function learnFromLease(lease: { live: boolean; expiresAtMs: number; remainingMs: number }): void {
  if (lease.live) learnStoreTime(lease.expiresAtMs - lease.remainingMs);
}

/** Now, by the store's clock. */
export function storeNow(): number {
  return storeMsAt(Date.now());
}

/** An instant of the store's clock on this machine's clock. */
export function localMs(storeMs: number): number {
  return storeMs - offsetMs;
}

/** The other way: what the store's clock shows at an instant of this machine's. */
export function storeMsAt(hereMs: number): number {
  return hereMs + offsetMs;
}

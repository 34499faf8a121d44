// The unit of work: acquire a key and release it, as a program does, with the answers checked.

/** What a pair of ours does beyond a bare lock. */
export const DOES_MORE =
  "fence, tombstone, secret token (hashed), nonce, store time, renewal and expiry timers";

/** Through `Leases`, what `connect(url)` returns: one attempt, as the floors and peers make. */
export function leasePairs(leases, names) {
  return async (worker, index) => {
    const attempt = await leases.tryAcquire(names(worker, index));
    if (!attempt.ok) throw new Error(`not granted: ${attempt.reason}`);
    const { released, reason } = await attempt.lease.release();
    if (!released) throw new Error(`not released: ${reason}`);
  };
}

/** Through `acquire`, which would wait if somebody else had the key. Here nobody has. */
export function waitingPairs(leases, names) {
  return async (worker, index) => {
    const lease = await leases.acquire(names(worker, index));
    const { released, reason } = await lease.release();
    if (!released) throw new Error(`not released: ${reason}`);
  };
}

/** Through a peer's `lock(name)`, which resolves with the function that unlocks. */
export function lockPairs(lock, names) {
  return async (worker, index) => {
    const unlock = await lock(names(worker, index));
    await unlock();
  };
}

const WARM_NAMES = 16;

/** Names that come again and again: each worker has a few of its own. */
export function warmNames(prefix = "warm") {
  return (worker, index) => `${prefix}/${worker}/${index % WARM_NAMES}`;
}

/** Names that neither this process nor the store ever saw. */
export function coldNames(prefix = "cold") {
  let next = 0;
  return () => {
    next += 1;
    return `${prefix}/${next}`;
  };
}

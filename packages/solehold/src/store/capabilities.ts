/** What a store can do and what it promises. A caller may require a capability and fail fast without it. */
export interface StoreCapabilities {
  /**
   * Acknowledged writes survive a crash of the store's process, of its machine, and every failover that its
   * configuration allows. False when any of the three is not certain.
   */
  readonly durable: boolean;
  /**
   * Where the store's time comes from. "exact": `now()` reads it without I/O. "reply": every reply carries it.
   * "none": the store has no clock, and leases end for others only by observation.
   */
  readonly clock: "exact" | "reply" | "none";
  /** The resolution of the store's time: 1000 for an HTTP Date header. */
  readonly clockGranularityMs: number;
  /** How far apart the clocks of the store's own machines may be when several of them answer; 0 where one does. */
  readonly clockSkewMs: number;
  /** Whether `watch` announces other processes' writes. */
  readonly watch: boolean;
  /** Whether a record can be deleted on condition of its version. Without it nothing is collected. */
  readonly conditionalDelete: boolean;
  /** The largest number of keys in one `read` or `apply`. */
  readonly maxBatch: number;
  /** How many calls are worth having in flight at once: 1 where batches beat concurrency. */
  readonly maxConcurrentCalls: number;
  /**
   * Many operations at once are shared out evenly among the calls that may be in flight, but no call gets fewer
   * than this. Default: one call takes all that fit.
   */
  readonly minBatch?: number;
}

/** Of stores that can do all that is optional; their clock, if they have one, is one, and counts milliseconds. */
const FULL = { clockGranularityMs: 1, clockSkewMs: 0, watch: true, conditionalDelete: true } as const;

export function fullCapabilities(own: Omit<StoreCapabilities, keyof typeof FULL>): StoreCapabilities {
  return Object.freeze({ ...FULL, ...own });
}

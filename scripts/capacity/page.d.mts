export interface CapacityRow {
  readonly name: string;
  readonly version: string;
  /** Stored by the engine for each lease; null where it has no count of its own. */
  readonly bytes: number | null;
  /** Renewals in one call, at most; null for a stream. */
  readonly batch: number | null;
  readonly clientUs: number;
  /** Null where the engine lives in its client. */
  readonly engineUs: number | null;
  readonly measuredOn: string;
  readonly load: number;
}

export interface Capacity {
  readonly machine: string;
  readonly node: string;
  /** A record with its key, as text. */
  readonly recordBytes: number;
  /** Memory of the handle of one held lease. */
  readonly handleBytes: number;
  readonly rows: readonly CapacityRow[];
}

export declare function tablesOf(capacity: Capacity): string;
/** The page with these tables in place of its own. */
export declare function withTables(page: string, capacity: Capacity): string;

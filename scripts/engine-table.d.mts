// The types of engine-table.mjs, for its test.

export interface EngineRow {
  readonly name: string;
  /** What its store stated; null when that test did not run. */
  readonly engine: Readonly<Record<string, unknown>> | null;
  readonly passed: number;
  readonly failed: number;
}

export declare function engineRows(report: unknown): readonly EngineRow[];

/** Empty when the report has nothing about engines. */
export declare function engineTable(report: unknown): string;

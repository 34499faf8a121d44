// The types of what the tests use of artifacts.mjs and rows.mjs.

export interface Row {
  /** The document's number, and the row's. */
  readonly id: string;
  readonly kind: string;
  /** The document's words. */
  readonly item: string;
  readonly ours: string;
  readonly status: "works" | "differs";
  readonly file: string;
  readonly title: string;
}

export interface SeedDocument {
  readonly seed: string;
  readonly page: string;
  readonly contract: string;
}

export declare const SEEDS: readonly SeedDocument[];
export declare const OWN_TEST: string;
export declare function readRows(): readonly Row[];
export declare function rowsOf(rows: readonly Row[], seed: string): readonly Row[];
export declare function testOf(row: Row): string;
/** By file and titles: "passed" only if all tests of that name did. */
export declare function resultsOf(report: unknown, root: string): ReadonlyMap<string, string>;
export declare function allPassed(rows: readonly Row[]): ReadonlyMap<string, string>;
/** Path -> content, all that the command writes. */
export declare function filesOf(
  rows: readonly Row[],
  results: ReadonlyMap<string, string>,
  api: object,
): Promise<ReadonlyMap<string, string>>;

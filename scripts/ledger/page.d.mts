export interface Canary {
  readonly bug: string;
  /** What objected to it; null when nothing did. */
  readonly oracle: string | null;
}

export interface Ledger {
  readonly startedAt: string;
  readonly command: string;
  readonly seconds: number;
  readonly commit: string;
  readonly sources: { readonly folders: readonly string[]; readonly sha256: string };
  readonly node: string;
  readonly machine: string;
  /** What a reader has to know about this run; written by hand, and gone with the next one. */
  readonly remarks?: readonly string[];
  readonly simulations: readonly {
    readonly title: string;
    readonly command: string;
    readonly seeds: number;
    readonly violations: number;
    readonly sometimes: Readonly<Record<string, number>>;
    readonly missed: readonly string[];
    readonly nondeterministic: readonly number[];
  }[];
  readonly bugs: readonly (Canary & { readonly seedsTried: number })[];
  readonly explorer: {
    readonly states: number;
    readonly violations: number;
    readonly worlds: readonly { readonly world: string; readonly states: number; readonly depth: number }[];
  } | null;
  readonly explorerBugs: readonly (Canary & { readonly world: string; readonly depth: number })[] | null;
  readonly model: {
    readonly traces: number;
    readonly violations: number;
    readonly reached: Readonly<Record<string, number>>;
    readonly witnesses: readonly string[];
    readonly bugs: readonly Canary[];
  };
  readonly soaks: readonly {
    readonly engine: string;
    readonly version: string;
    readonly seconds: number;
    readonly grants: number;
    readonly accepted: number;
    readonly refused: number;
    readonly stops: number;
    readonly kills: number;
    readonly restarts: number;
    readonly violations: readonly string[];
  }[];
  readonly soakBugs: readonly Canary[];
}

/** Why the ledger is red; nothing when it is green. */
export declare function problemsOf(ledger: Ledger): readonly string[];
export declare function pageOf(ledger: Ledger): string;

import type { decide, LeasePolicy } from "../core/index.ts";
import type { Env, RandomIds } from "../env/index.ts";
import type { LeaseStore } from "../store/index.ts";
import type { CallBatcher } from "./call-batcher.ts";
import type { RecordCache } from "./record-cache.ts";

/** What an executor over a store is made of, for those who do its work. */
export interface ExecutorParts {
  readonly env: Env;
  readonly ids: RandomIds;
  readonly store: LeaseStore;
  readonly policy: LeasePolicy;
  readonly calls: CallBatcher;
  readonly cache: RecordCache;
  readonly decide: typeof decide;
  /** Ended records are kept at least this long. */
  readonly retentionMs: number;
}

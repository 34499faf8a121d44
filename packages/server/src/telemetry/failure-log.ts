/**
 * Why a request could not be answered, for the operator. The client gets the kind of failure alone, because the message
 * may name hosts. A store that is down fails every request, so its failures are logged once in ten seconds for each kind,
 * with the number of those in between. Failures of the server itself are all logged.
 */
import { StoreError } from "solehold";
import type { Env } from "solehold/internal";
import { ProblemError } from "../protocol/problem.ts";
import type { Logger } from "./log.ts";

const REPEAT_AFTER_MS = 10_000;

export class FailureLog {
  readonly #env: Env;
  readonly #log: Logger;
  readonly #logged = new Map<StoreError["kind"], { readonly atMs: number; unlogged: number }>();

  constructor(env: Env, log: Logger) {
    this.#env = env;
    this.#log = log;
  }

  failed(error: unknown, traceId: string): void {
    if (error instanceof ProblemError) return;
    if (error instanceof StoreError) this.#storeFailed(error, traceId);
    else this.#log.error({ traceId, err: error }, "a request failed");
  }

  #storeFailed({ kind, outcome, message }: StoreError, traceId: string): void {
    const atMs = this.#env.monotonicMs();
    const last = this.#logged.get(kind);
    if (last !== undefined && atMs - last.atMs < REPEAT_AFTER_MS) {
      last.unlogged += 1;
      return;
    }
    this.#logged.set(kind, { atMs, unlogged: 0 });
    const fields = { traceId, storeError: kind, outcome, cause: message, unlogged: last?.unlogged ?? 0 };
    this.#log.warn(fields, "the store failed");
  }
}

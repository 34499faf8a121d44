/**
 * The calls of a SimpleStore to its backend, each with a deadline, each failure as a StoreError. A write without an
 * answer is of unknown outcome; so is one that failed, unless the backend says that it was certainly not done.
 */
import type { LeaseKey } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import type { ConditionalWrite } from "./contract.ts";
import { withAbort } from "./deadline.ts";
import { type FailedOutcome, StoreError } from "./errors.ts";
import type { ConditionalReply, GetReply, ListRange, ListReply, SimpleBackend } from "./simple-backend.ts";
import type { RecordCodec } from "./stored-text.ts";

export interface BackendCallsOptions {
  readonly name: string;
  readonly backend: SimpleBackend;
  readonly env: Env;
  readonly timeoutMs: number;
  readonly codec: RecordCodec;
}

export class BackendCalls {
  readonly #options: BackendCallsOptions;

  constructor(options: BackendCallsOptions) {
    this.#options = options;
  }

  get(key: LeaseKey): Promise<GetReply> {
    return this.#call("read", "not-applied", (signal) => this.#options.backend.get(key, signal));
  }

  list(range: ListRange): Promise<ListReply> {
    const { backend } = this.#options;
    const list = backend.list?.bind(backend);
    if (list === undefined) throw this.#impossible("listing");
    return this.#call("listing", "not-applied", (signal) => list(range, signal));
  }

  async write({ key, expected, next }: ConditionalWrite): Promise<ConditionalReply> {
    const { backend, codec, env } = this.#options;
    if (next !== null) {
      const put = { key, expected, text: codec.encode(next, expected), newVersion: randomId(env) };
      return this.#call("write", "unknown", (signal) => backend.putIf(put, signal));
    }
    if (expected === null) {
      const { value, ...reply } = await this.get(key);
      return value === null ? { ...reply, kind: "done" } : { ...reply, kind: "conflict", current: value };
    }
    const deleteIf = backend.deleteIf?.bind(backend);
    if (deleteIf === undefined) throw this.#impossible("delete");
    return this.#call("delete", "unknown", (signal) => deleteIf(key, expected, signal));
  }

  async #call<Reply>(
    what: string,
    ifLost: FailedOutcome,
    send: (signal: AbortSignal) => Promise<Reply>,
  ): Promise<Reply> {
    const { name, env, timeoutMs } = this.#options;
    const onExpiry = (): StoreError => {
      const message = `${name}: no answer to a ${what} within ${timeoutMs} ms`;
      return new StoreError("timeout", message, { outcome: ifLost });
    };
    try {
      return await withAbort(env, timeoutMs, send, onExpiry);
    } catch (error) {
      throw this.#failure(what, ifLost, error);
    }
  }

  #failure(what: string, ifLost: FailedOutcome, error: unknown): StoreError {
    const isKnown = error instanceof StoreError;
    if (isKnown && (ifLost === "unknown" || error.outcome === "not-applied")) return error;
    const reason = (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ");
    const message = isKnown ? reason : `${this.#options.name}: a ${what} failed: ${reason}`;
    return new StoreError(isKnown ? error.kind : "internal", message, { outcome: ifLost, cause: error });
  }

  #impossible(what: string): StoreError {
    const message = `${this.#options.name}: this store cannot do a ${what}, as its capabilities say`;
    return new StoreError("config", message, { outcome: "not-applied" });
  }
}

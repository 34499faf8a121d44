// A store that misbehaves on demand, around a real one: it loses replies, holds requests back so that they arrive
// late, fails before applying, or never answers.

import type { LeaseKey } from "../../src/core/index.ts";
import type {
  ApplyReply,
  ConditionalWrite,
  LeaseStore,
  ListPage,
  ListQuery,
  ReadReply,
  StoreCapabilities,
  StoreEvent,
  StoreWatch,
  WatchScope,
} from "../../src/store/index.ts";
import { StoreError } from "../../src/store/index.ts";

export type WriteFault =
  /** The store does it, the caller gets an error. */
  | "reply-lost"
  /** Nothing happens now; `deliverLate()` brings the request to the store. */
  | "delayed"
  /** Nothing happens, and the error says so for certain. */
  | "failed-before"
  /** Per-write unknown instead of a rejected call, and it was applied. */
  | "unknown-applied"
  /** The call never settles. */
  | "frozen";

export class FaultyStore implements LeaseStore {
  readonly name = "faulty";
  readonly calls = { read: 0, apply: 0, writes: 0 };
  writeFaults: (WriteFault | null)[] = [];
  readFaults: ("failed" | "frozen" | null)[] = [];
  readonly #inner: LeaseStore;
  readonly #late: (readonly ConditionalWrite[])[] = [];

  constructor(inner: LeaseStore) {
    this.#inner = inner;
    if (inner.now !== undefined) this.now = (): number => inner.now?.() ?? 0;
  }

  now?: () => number;

  get capabilities(): StoreCapabilities {
    return this.#inner.capabilities;
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.calls.read += 1;
    const fault = this.readFaults.shift() ?? null;
    if (fault === "frozen") return await new Promise<never>(() => undefined);
    if (fault === "failed") throw lost("a read failed");
    return await this.#inner.read(keys);
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.calls.apply += 1;
    this.calls.writes += writes.length;
    const fault = this.writeFaults.shift() ?? null;
    switch (fault) {
      case null:
        return await this.#inner.apply(writes);
      case "reply-lost":
        await this.#inner.apply(writes);
        throw lost("the reply was lost");
      case "delayed":
        this.#late.push(writes);
        throw lost("no reply");
      case "failed-before":
        throw new StoreError("unreachable", "connection refused", { outcome: "not-applied" });
      case "unknown-applied": {
        const reply = await this.#inner.apply(writes);
        return { ...reply, results: reply.results.map(() => ({ kind: "unknown", cause: lost("409") })) };
      }
      case "frozen":
        return await new Promise<never>(() => undefined);
    }
  }

  /** The held-back requests arrive, in order. */
  async deliverLate(): Promise<ApplyReply[]> {
    const replies: ApplyReply[] = [];
    for (const writes of this.#late.splice(0)) replies.push(await this.#inner.apply(writes));
    return replies;
  }

  list(query: ListQuery): Promise<ListPage> {
    if (this.#inner.list === undefined) throw new Error("no listing");
    return this.#inner.list(query);
  }

  async watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    if (this.#inner.watch === undefined) throw new Error("no watch");
    return await this.#inner.watch(scope, listener);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

function lost(message: string): StoreError {
  return new StoreError("timeout", message, { outcome: "unknown" });
}

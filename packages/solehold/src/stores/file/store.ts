/**
 * Leases in files, one a key, for the processes of one machine: the object store's JSON on a local disk, for others to
 * read. Readers take no lock; writers take turns. The embedded store is faster.
 */
import type { LeaseKey } from "../../core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { fileFailure } from "./failures.ts";
import { FolderWatch } from "./watch.ts";
import { FileWriter, type FileWriterParts } from "./writer.ts";

const CAPABILITIES: StoreCapabilities = Object.freeze({
  durable: true,
  clock: "exact",
  clockGranularityMs: 1,
  clockSkewMs: 0,
  watch: true,
  conditionalDelete: true,
  /** All files of a call may be open at once. */
  maxBatch: 100,
  maxConcurrentCalls: 1,
});

export class FileStore implements LeaseStore {
  readonly name = "file";
  readonly capabilities = CAPABILITIES;
  readonly #parts: FileWriterParts;
  readonly #writer: FileWriter;
  readonly #watch: FolderWatch;
  #closed = false;

  /** Use `openFileStore`. */
  constructor(parts: FileWriterParts) {
    this.#parts = parts;
    this.#writer = new FileWriter(parts);
    this.#watch = new FolderWatch(parts.files, parts.env);
  }

  now(): number {
    return this.#parts.clock.now();
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const { files } = this.#parts;
    const records = await this.#call(() => Promise.all(keys.map((key) => files.read(key))));
    return { storeTimeMs: this.now(), records };
  }

  /** What could have been renamed already reports itself as unknown. */
  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const results = await this.#call(() => this.#writer.apply(writes));
    return { storeTimeMs: this.now(), results };
  }

  async list(query: ListQuery): Promise<ListPage> {
    const page = await this.#call(() => this.#parts.files.list(query));
    return { storeTimeMs: this.now(), ...page };
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    return await this.#call(() => this.#watch.open(scope, listener));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watch.close();
    await this.#writer.idle();
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreError("closed", "the file store was closed", { outcome: "not-applied" });
    try {
      return await work();
    } catch (error) {
      throw fileFailure(this.#parts.files.folder, error, "not-applied");
    }
  }
}

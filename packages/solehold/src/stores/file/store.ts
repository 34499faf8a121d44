/**
 * Leases in files, one a key, for the processes of one machine. Readers take no lock; writers take turns.
 * Slower than the embedded store, but without a package to install, and in a format that others read.
 */
import type { LeaseKey } from "../../core/index.ts";
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
} from "../../store/index.ts";
import { StoreError } from "../../store/index.ts";
import { inParallel } from "../object/parallel.ts";
import { fileFailure } from "./failures.ts";
import { LeaseFiles } from "./lease-file.ts";
import { listFiles } from "./listing.ts";
import { FolderNews } from "./watching.ts";
import { FileWriter, type FileWriterParts } from "./writer.ts";

const CAPABILITIES: StoreCapabilities = Object.freeze({
  durable: true,
  clock: "exact",
  clockGranularityMs: 1,
  watch: true,
  conditionalDelete: true,
  maxBatch: 1_000,
  maxConcurrentCalls: 1,
});

const WIDTH = 8;

export class FileStore implements LeaseStore {
  readonly name = "file";
  readonly capabilities = CAPABILITIES;
  readonly #parts: Omit<FileWriterParts, "files">;
  readonly #files: LeaseFiles;
  readonly #writer: FileWriter;
  readonly #news: FolderNews;
  #closed = false;

  /** Use `openFileStore`. */
  constructor(parts: Omit<FileWriterParts, "files">) {
    this.#parts = parts;
    this.#files = new LeaseFiles(parts.folders.leases, parts.clock);
    this.#writer = new FileWriter({ ...parts, files: this.#files });
    this.#news = new FolderNews(parts.folders.leases, this.#files, parts.env);
  }

  now(): number {
    return this.#parts.clock.now();
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const records = await this.#reading(() => inParallel(keys, WIDTH, (key) => this.#files.read(key)));
    return { storeTimeMs: this.now(), records };
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertOpen();
    const results = await this.#writer.apply(writes);
    return { storeTimeMs: this.now(), results };
  }

  async list(query: ListQuery): Promise<ListPage> {
    const page = await this.#reading(() => listFiles(this.#parts.folders.leases, this.#files, query));
    return { storeTimeMs: this.now(), ...page };
  }

  async watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    this.#assertOpen();
    return this.#news.open(scope, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#news.close();
    await this.#writer.idle();
  }

  async #reading<T>(work: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    try {
      return await work();
    } catch (error) {
      throw fileFailure(this.#parts.folders.root, error, "not-applied");
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError("closed", "the file store was closed", { outcome: "not-applied" });
  }
}

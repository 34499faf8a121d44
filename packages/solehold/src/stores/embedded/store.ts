/**
 * The embedded store: durable leases in a folder of this machine, shared by its processes, on LMDB.
 *
 * Promises: a write that was answered as applied is on disk; of several writers for one version one wins,
 * in whichever process; a read sees every write that was acknowledged before it began; the clock is the
 * same in all processes and never goes back.
 * Not promised: that several machines can share the folder (they cannot), or that a write is answered while
 * another process is frozen in the middle of its commit (it waits; this process goes on with other work).
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type Notebook,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchScope,
  type WriteResult,
} from "../../store/index.ts";
import { Bell } from "./bell.ts";
import type { StoreClock } from "./clock.ts";
import type { Databases } from "./database.ts";
import type { Door } from "./door.ts";
import { readFailure } from "./failure.ts";
import { Follower } from "./follower.ts";
import { Journal } from "./journal.ts";
import { keyFromId } from "./keys.ts";
import { Listing } from "./listing.ts";
import { NoteRing } from "./notebook.ts";
import type { Seams } from "./open.ts";
import { Reader } from "./reader.ts";
import { Revisions } from "./revisions.ts";
import { Space } from "./space.ts";
import { raiseMark } from "./state.ts";
import { LEAST_SHARE, Turns } from "./turns.ts";
import { ValueCodec } from "./value.ts";
import { Watchers } from "./watchers.ts";
import { Writer } from "./writer.ts";

const CAPABILITIES: StoreCapabilities = Object.freeze({
  durable: true,
  clock: "exact",
  clockGranularityMs: 1,
  watch: true,
  conditionalDelete: true,
  /** Larger calls keep the event loop longer at a time: `npm run bench -- renewals` prints for how long. */
  maxBatch: 2_500,
  maxConcurrentCalls: 2,
  minBatch: LEAST_SHARE,
});

export interface StoreParts {
  readonly databases: Databases;
  readonly door: Door;
  readonly folder: string;
  readonly clock: StoreClock;
  readonly env: Env;
  readonly seams: Pick<Seams, "revisionBlock" | "bell" | "spaceLeft">;
}

export class EmbeddedStore implements LeaseStore {
  readonly name = "embedded";
  readonly capabilities = CAPABILITIES;
  readonly #parts: StoreParts;
  readonly #journal: Journal;
  readonly #reader: Reader;
  readonly #writer: Writer;
  readonly #listing: Listing;
  readonly #watchers: Watchers;
  readonly #bell: Bell;
  readonly #follower: Follower;
  #callsUnderWay = 0;
  #onIdle: () => void = () => undefined;
  #following: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  /** Use `openEmbeddedStore`. */
  constructor(parts: StoreParts) {
    const { databases, clock, env, folder, seams } = parts;
    const codec = new ValueCodec(clock);
    const revisions = new Revisions(databases, seams.revisionBlock);
    this.#parts = parts;
    this.#journal = new Journal(databases, clock, env);
    this.#reader = new Reader(databases, codec, env);
    this.#writer = new Writer({
      ...{ databases, codec, env, folder, revisions },
      reader: this.#reader,
      journal: this.#journal,
      turns: new Turns(databases, env),
      space: new Space(folder, env, seams.spaceLeft),
    });
    this.#listing = new Listing(databases, this.#reader, env);
    this.#watchers = new Watchers(env);
    this.#bell = new Bell(folder, seams.bell);
    this.#follower = new Follower({
      ...{ databases, clock, env, bell: this.#bell },
      ownMemberId: this.#journal.memberId,
      onChanged: (id) => this.#watchers.changed(keyFromId(id), () => this.#recordNow(keyFromId(id))),
      onGap: () => this.#watchers.reset(),
    });
  }

  now(): number {
    return this.#parts.clock.now();
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return this.#call(async () => {
      const records = await this.#reading(() => this.#reader.read(keys));
      return { storeTimeMs: this.now(), records };
    });
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    return this.#call(async () => {
      const results = await this.#writer.apply(writes);
      this.#announce(writes, results);
      return { storeTimeMs: this.now(), results };
    });
  }

  list(query: ListQuery): Promise<ListPage> {
    return this.#call(async () => {
      const page = await this.#reading(() => this.#listing.page(query));
      return { storeTimeMs: this.now(), ...page };
    });
  }

  watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    return this.#call(async () => {
      const remove = this.#watchers.add(scope, listener);
      try {
        this.#following ??= this.#follower.start();
        await this.#following;
      } catch (error) {
        remove();
        this.#following = null;
        throw readFailure(error, this.#parts.folder);
      }
      return { close: async () => this.#unwatch(remove) };
    });
  }

  notebook(name: string): Promise<Notebook> {
    return this.#call(() => this.#reading(() => NoteRing.open(this.#parts.databases, name)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#callsUnderWay > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#watchers.clear();
    this.#follower.stop();
    this.#bell.close();
    // A disk that cannot take it must not keep the store from being closed.
    const { databases, door } = this.#parts;
    await raiseMark(databases, this.now()).catch(() => undefined);
    try {
      await databases.gate.through(() => databases.root.close());
    } finally {
      door.leave();
    }
  }

  #unwatch(remove: () => void): void {
    remove();
    if (!this.#watchers.isEmpty || this.#following === null) return;
    this.#following = null;
    this.#follower.stop();
  }

  /** To this process's watchers with the record; to others by the journal, which was committed with it. */
  #announce(writes: readonly ConditionalWrite[], results: readonly WriteResult[]): void {
    if (!this.#watchers.isEmpty) {
      for (const [index, { key, next }] of writes.entries()) {
        if (results[index]?.kind === "applied") this.#watchers.changed(key, () => next);
      }
    }
    if (this.#journal.isWatched()) this.#bell.ring();
  }

  #recordNow(key: LeaseKey): LeaseRecord | null | "unreadable" {
    const stored = this.#reader.current(key);
    if (stored.kind === "corrupt") return "unreadable";
    return stored.kind === "found" ? stored.record : null;
  }

  async #reading<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      throw readFailure(error, this.#parts.folder);
    }
  }

  /** Every call rejects after close(), and close() waits for those that had begun. */
  async #call<T>(run: () => Promise<T>): Promise<T> {
    if (this.#closing !== null)
      throw new StoreError("closed", `the embedded store in '${this.#parts.folder}' was closed`, {
        outcome: "not-applied",
      });
    this.#callsUnderWay += 1;
    try {
      return await run();
    } finally {
      this.#callsUnderWay -= 1;
      if (this.#callsUnderWay === 0) this.#onIdle();
    }
  }
}

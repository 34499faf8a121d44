/**
 * NATS JetStream as a lease store: a key-value bucket whose revisions are the versions. All requests of a call are in
 * flight at once, and each is sent once. Records never expire in the bucket: a tombstone keeps the fence.
 *
 * The store has no clock (`clock: "none"`): JetStream shows a time only with what it stores, so a read that told the
 * time would have to write. Leases end for others by observation. docs/stores/nats.md argues it.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type FailedOutcome,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  withDeadline,
} from "../../store/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { connectNats, type NatsPackages } from "./client.ts";
import { isDoubt, storeErrorFrom } from "./errors.ts";
import { NatsJoining } from "./joining.ts";
import { NatsLayout } from "./layout.ts";
import { listPage } from "./listing.ts";
import type { NatsSettings } from "./options.ts";
import { readRecords } from "./reading.ts";
import type { NatsSession } from "./session.ts";
import { NatsWatching } from "./watching.ts";
import { applyWrites } from "./writing.ts";

export interface NatsStoreParts {
  readonly env: Env;
  readonly packages: NatsPackages;
  readonly settings: NatsSettings;
}

type SessionWork<Value> = (session: NatsSession) => Promise<Value>;

export class NatsStore implements LeaseStore {
  readonly name = "nats";
  readonly #env: Env;
  readonly #settings: NatsSettings;
  readonly #joining: NatsJoining;
  readonly #sessions: Reconnecting<NatsSession>;
  readonly #watching: NatsWatching;
  #durable = false;
  #closed = false;

  private constructor({ env, packages, settings }: NatsStoreParts) {
    this.#env = env;
    this.#settings = settings;
    this.#joining = new NatsJoining({ env, layout: new NatsLayout(settings.bucket), settings });
    this.#sessions = new Reconnecting({
      env,
      name: this.name,
      open: () => this.#openSession(packages),
      close: (session) => this.#closeSession(session),
    });
    this.#watching = new NatsWatching({
      env,
      // A loss is not reported here: it waits for a call that reads or writes.
      run: async (work) => this.#on(await this.#session(), "not-applied", work),
      onEnd: (session) => void this.#sessions.lose(session),
    });
  }

  /** The first attempt is the only one: a wrong address is an error at once. */
  static async open(parts: NatsStoreParts): Promise<NatsStore> {
    const store = new NatsStore(parts);
    try {
      const { info } = await store.#session();
      store.#durable = parts.settings.syncInterval === "always" && info.config.storage === "file";
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  get capabilities(): StoreCapabilities {
    return {
      durable: this.#durable,
      clock: "none",
      clockGranularityMs: 1,
      clockSkewMs: 0,
      watch: true,
      conditionalDelete: true,
      maxBatch: 128,
      // The server works on one call while the client prepares the next.
      maxConcurrentCalls: 2,
    };
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return this.#call("not-applied", (session) => readRecords(session, keys));
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const { address } = this.#settings;
    const results = await this.#call("unknown", (session) => applyWrites(session, writes, address));
    return { storeTimeMs: null, results };
  }

  list(query: ListQuery): Promise<ListPage> {
    return this.#call("not-applied", (session) => listPage(session, query));
  }

  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    return this.#watching.watch(scope, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watching.close();
    await this.#sessions.close();
  }

  async #call<Value>(outcome: FailedOutcome, work: SessionWork<Value>): Promise<Value> {
    const session = await this.#session();
    this.#assertNothingLost("not-applied");
    try {
      return await this.#on(session, outcome, work);
    } catch (error) {
      if (!isDoubt(error)) throw error;
      // Whoever joins the data again knows whether something was lost.
      await this.#session();
      this.#assertNothingLost(outcome);
      throw error;
    }
  }

  /** Sends on this session and no other. One that does not answer in time, or shows other data, is given up. */
  async #on<Value>(session: NatsSession, outcome: FailedOutcome, work: SessionWork<Value>): Promise<Value> {
    const onExpiry = (): StoreError => {
      void this.#sessions.lose(session);
      return this.#silence(outcome);
    };
    try {
      return await this.#inTime(work(session), onExpiry);
    } catch (error) {
      if (this.#closed) throw this.#closedError(outcome);
      if (isDoubt(error)) await this.#sessions.lose(session);
      throw storeErrorFrom(error, this.#settings.address, outcome);
    }
  }

  async #session(): Promise<NatsSession> {
    try {
      return await this.#inTime(this.#sessions.get(), () => this.#silence("not-applied"));
    } catch (error) {
      if (this.#closed) throw this.#closedError("not-applied");
      throw storeErrorFrom(error, this.#settings.address, "not-applied");
    }
  }

  #assertNothingLost(outcome: FailedOutcome): void {
    const loss = this.#joining.takeLoss();
    if (loss === null) return;
    const advice = "holders of lost leases may go on until their ttl has passed, so check what they guard";
    const message = `NATS at ${this.#settings.address} lost data (${loss}): ${advice}`;
    throw new StoreError("data-loss", message, { outcome });
  }

  async #openSession(packages: NatsPackages): Promise<NatsSession> {
    const client = await connectNats(packages, this.#settings);
    try {
      const session = await this.#inTime(this.#joining.join(client), () => this.#silence("not-applied"));
      void client.connection.closed().then(() => this.#sessions.lose(session));
      return session;
    } catch (error) {
      void client.connection.close().catch(() => undefined);
      throw error;
    }
  }

  /** Bounded, because a connection that is stuck cannot be flushed. */
  async #closeSession({ client }: NatsSession): Promise<void> {
    await this.#inTime(client.connection.close(), () => this.#silence("unknown")).catch(() => undefined);
  }

  #inTime<Value>(work: Promise<Value>, onExpiry: () => StoreError): Promise<Value> {
    return withDeadline(this.#env, this.#settings.timeoutMs, work, onExpiry);
  }

  #silence(outcome: FailedOutcome): StoreError {
    const { address, timeoutMs } = this.#settings;
    const message = `NATS at ${address} gave no answer within ${timeoutMs} ms: check that it runs and is not overloaded`;
    return new StoreError("timeout", message, { outcome });
  }

  #closedError(outcome: FailedOutcome): StoreError {
    return new StoreError("closed", "the NATS store was closed", { outcome });
  }
}

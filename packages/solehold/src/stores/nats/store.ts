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
      run: (work) => this.#call("not-applied", work),
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

  /** Sends on one session and no other. A session that does not answer in time may be dead, and is given up. */
  async #call<Value>(outcome: FailedOutcome, work: (session: NatsSession) => Promise<Value>): Promise<Value> {
    const session = await this.#session();
    this.#assertNothingLost("not-applied");
    const onExpiry = (): StoreError => {
      void this.#sessions.lose(session);
      return this.#silence(outcome);
    };
    try {
      return await withDeadline(this.#env, this.#settings.timeoutMs, work(session), onExpiry);
    } catch (error) {
      if (this.#closed) throw this.#closedError(outcome);
      if (isDoubt(error)) await this.#joinAgain(session, outcome);
      throw storeErrorFrom(error, this.#settings.address, outcome);
    }
  }

  async #session(): Promise<NatsSession> {
    const { timeoutMs, address } = this.#settings;
    try {
      const onExpiry = (): StoreError => this.#silence("not-applied");
      return await withDeadline(this.#env, timeoutMs, this.#sessions.get(), onExpiry);
    } catch (error) {
      if (this.#closed) throw this.#closedError("not-applied");
      throw storeErrorFrom(error, address, "not-applied");
    }
  }

  /** The data may be gone: whoever joins it again knows. */
  async #joinAgain(session: NatsSession, outcome: FailedOutcome): Promise<void> {
    await this.#sessions.lose(session);
    await this.#session();
    this.#assertNothingLost(outcome);
    const message = `NATS at ${this.#settings.address}: the bucket changed during the call: try again`;
    throw new StoreError("unreachable", message, { outcome });
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
      const session = await this.#joining.join(client);
      void client.connection.closed().then(() => this.#sessions.lose(session));
      return session;
    } catch (error) {
      void client.connection.close().catch(() => undefined);
      throw error;
    }
  }

  /** Bounded, because a connection that is stuck cannot be flushed. */
  async #closeSession({ client }: NatsSession): Promise<void> {
    const { timeoutMs } = this.#settings;
    const closing = withDeadline(this.#env, timeoutMs, client.connection.close(), () =>
      this.#silence("unknown"),
    );
    await closing.catch(() => undefined);
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

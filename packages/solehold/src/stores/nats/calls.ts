/**
 * Calls: each gets a session, opened anew after the last one ended, and a deadline. Nothing is sent twice. A loss of
 * data is reported by one call, the next one that reads or writes; after it the client works on what is there.
 */
import type { Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError, withDeadline } from "../../store/index.ts";
import { lossError, silenceError } from "../support/failures.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import { connectNats, type NatsPackages } from "./client.ts";
import { isDoubt, storeErrorFrom } from "./errors.ts";
import { NatsJoining } from "./joining.ts";
import type { NatsSettings } from "./options.ts";
import type { NatsSession } from "./session.ts";

export type SessionWork<Value> = (session: NatsSession) => Promise<Value>;

export class NatsCalls {
  readonly #env: Env;
  readonly #settings: NatsSettings;
  readonly #joining: NatsJoining;
  readonly #sessions: Reconnecting<NatsSession>;
  #closed = false;

  constructor(env: Env, packages: NatsPackages, settings: NatsSettings) {
    this.#env = env;
    this.#settings = settings;
    this.#joining = new NatsJoining(env, settings);
    this.#sessions = new Reconnecting({
      env,
      name: "nats",
      open: () => this.#open(packages),
      // A connection that is stuck cannot be flushed, so its end is not waited for longer than for an answer.
      close: ({ client }) => this.#inTime(client.connection.close(), "unknown").catch(() => undefined),
    });
  }

  /** `outcome` is what is true of writes when the server did not answer. */
  async call<Value>(outcome: FailedOutcome, work: SessionWork<Value>): Promise<Value> {
    const session = await this.#session();
    this.#assertNothingLost("not-applied");
    try {
      return await this.#on(session, outcome, work);
    } catch (error) {
      if (!isDoubt(error)) throw error;
      // To join the data again shows whether something was lost.
      await this.#session().catch(() => undefined);
      this.#assertNothingLost(outcome);
      throw error;
    }
  }

  /** As `call`, for reads in the background, which nobody could report a loss to. */
  async callSilently<Value>(work: SessionWork<Value>): Promise<Value> {
    return this.#on(await this.#session(), "not-applied", work);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#sessions.close();
  }

  /** Sends on this session and no other. One that does not answer in time, or shows other data, is given up. */
  async #on<Value>(session: NatsSession, outcome: FailedOutcome, work: SessionWork<Value>): Promise<Value> {
    try {
      return await this.#inTime(work(session), outcome);
    } catch (error) {
      if (isDoubt(error)) await this.#sessions.lose(session);
      if (error instanceof StoreError && error.kind === "timeout") void this.#sessions.lose(session);
      throw this.#failure(error, outcome);
    }
  }

  async #session(): Promise<NatsSession> {
    try {
      return await this.#inTime(this.#sessions.get(), "not-applied");
    } catch (error) {
      throw this.#failure(error, "not-applied");
    }
  }

  async #open(packages: NatsPackages): Promise<NatsSession> {
    const client = await connectNats(packages, this.#settings);
    try {
      const session = await this.#inTime(this.#joining.join(client), "not-applied");
      void client.connection.closed().then(() => this.#sessions.lose(session));
      return session;
    } catch (error) {
      void client.connection.close().catch(() => undefined);
      throw error;
    }
  }

  #assertNothingLost(outcome: FailedOutcome): void {
    const loss = this.#joining.takeLoss();
    if (loss !== null) throw lossError(`NATS at ${this.#settings.address}`, loss, outcome);
  }

  #inTime<Value>(work: Promise<Value>, outcome: FailedOutcome): Promise<Value> {
    const { address, timeoutMs } = this.#settings;
    const late = (): StoreError => silenceError(`NATS at ${address}`, timeoutMs, outcome);
    return withDeadline(this.#env, timeoutMs, work, late);
  }

  #failure(error: unknown, outcome: FailedOutcome): StoreError {
    if (this.#closed) return new StoreError("closed", "the NATS store was closed", { outcome });
    return storeErrorFrom(error, this.#settings.address, outcome);
  }
}

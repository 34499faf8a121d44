/**
 * A connection that comes back. Callers get the wire of the moment, or wait for the next one, but never
 * longer than the timeout. The client's own reconnecting is off: it would send again what it had queued.
 */
import { type Env, jittered, randomId, type Timer } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { Deadlines } from "../support/deadlines.ts";
import type { NatsPackage } from "./client.ts";
import { asUnknown, closedError, isLasting, storeErrorFrom } from "./errors.ts";
import type { NatsSettings } from "./options.ts";
import { NatsWire } from "./wire.ts";

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;

interface Waiting {
  readonly resolve: (wire: NatsWire) => void;
  readonly reject: (error: StoreError) => void;
}

export class NatsConnection {
  readonly address: string;
  readonly #env: Env;
  readonly #package: NatsPackage;
  readonly #settings: NatsSettings;
  readonly #deadlines: Deadlines;
  readonly #waiting: Waiting[] = [];
  #wire: NatsWire | null = null;
  #lastFailure: StoreError | null = null;
  #retry: Timer | null = null;
  #attempts = 0;
  #closed = false;

  private constructor(env: Env, natsPackage: NatsPackage, settings: NatsSettings) {
    this.#env = env;
    this.#package = natsPackage;
    this.#settings = settings;
    this.#deadlines = new Deadlines(env, settings.timeoutMs);
    this.address = settings.address;
  }

  /** The first attempt is the only one: a wrong address is told at once. */
  static async open(env: Env, natsPackage: NatsPackage, settings: NatsSettings): Promise<NatsConnection> {
    const connection = new NatsConnection(env, natsPackage, settings);
    try {
      await connection.#connect();
    } catch (error) {
      connection.close();
      throw storeErrorFrom(error, settings.address, "not-applied");
    }
    return connection;
  }

  /** Null while there is no connection. */
  get current(): NatsWire | null {
    return this.#wire;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** The wire, now or as soon as there is one. */
  async ready(): Promise<NatsWire> {
    if (this.#closed) throw closedError();
    if (this.#wire !== null) return this.#wire;
    const next = new Promise<NatsWire>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    return this.#deadlines.bound(next, () => this.#lastFailure ?? this.#silence("not-applied"));
  }

  /**
   * As `call` settles, which must have been sent on this wire. When it has not settled in time the wire is
   * ended, because one that does not answer may be dead without our knowing.
   */
  inTime<T>(wire: NatsWire, call: Promise<T>, outcome: FailedOutcome): Promise<T> {
    const onExpiry = (): StoreError => {
      wire.end(this.#silence("unknown"));
      return this.#silence(outcome);
    };
    return this.#deadlines.bound(call, onExpiry, (error) => {
      const failure = storeErrorFrom(error, this.address, outcome);
      return Promise.reject(outcome === "unknown" ? asUnknown(failure) : failure);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#retry?.cancel();
    this.#deadlines.close();
    this.#wire?.end(new StoreError("closed", "the NATS store was closed", { outcome: "unknown" }));
    this.#wire = null;
    this.#rejectAll(closedError());
  }

  async #connect(): Promise<void> {
    const { timeoutMs, connection } = this.#settings;
    const prefix = typeof connection.inboxPrefix === "string" ? connection.inboxPrefix : "_INBOX";
    let late = false;
    const connecting = this.#package.connect({
      name: "solehold",
      ...connection,
      reconnect: false,
      waitOnFirstConnect: false,
      timeout: timeoutMs,
    });
    connecting.then(
      (client) => (late ? client.close() : undefined),
      () => undefined,
    );
    const client = await this.#deadlines.bound(connecting, () => {
      late = true;
      return this.#silence("not-applied");
    });
    const inbox = `${prefix}.${randomId(this.#env)}`;
    const wire = new NatsWire({ client, headers: () => this.#package.headers(), inbox });
    if (this.#closed) return wire.end(closedError());
    this.#wire = wire;
    this.#attempts = 0;
    this.#lastFailure = null;
    wire.onEnd(() => this.#lose(wire));
    for (const { resolve } of this.#waiting.splice(0)) resolve(wire);
  }

  #lose(wire: NatsWire): void {
    if (wire !== this.#wire) return;
    this.#wire = null;
    this.#lastFailure = new StoreError("unreachable", `NATS at ${this.address}: the connection was lost`, {
      outcome: "not-applied",
    });
    if (!this.#closed) this.#reconnect();
  }

  #reconnect(): void {
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** this.#attempts, LAST_RETRY_MS);
    this.#attempts += 1;
    this.#retry = this.#env.timer(jittered(this.#env, backoffMs, 0.3), () => {
      this.#connect().catch((error: unknown) => this.#failedToConnect(error));
    });
  }

  #failedToConnect(error: unknown): void {
    if (this.#closed) return;
    const failure = storeErrorFrom(error, this.address, "not-applied");
    this.#lastFailure = failure;
    if (isLasting(failure)) this.#rejectAll(failure);
    this.#reconnect();
  }

  #rejectAll(error: StoreError): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  #silence(outcome: FailedOutcome): StoreError {
    const message = `NATS at ${this.address} gave no answer within ${this.#settings.timeoutMs} ms: check that it runs and is not overloaded`;
    return new StoreError("timeout", message, { outcome });
  }
}

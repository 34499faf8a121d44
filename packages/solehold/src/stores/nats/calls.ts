/**
 * Calls, and what each brings back to prove that it met the data that was joined. All of it is pipelined with
 * the call, in the same round trip:
 *
 *   a message that was written, whose sequence must be above all that this client has seen,
 *   the time at which the server stored it, see clock.ts, unless it was told just now,
 *   the state of the data, which must be what it was. (An update that was done needs none: its key has the id
 *   of the data, and had the sequence that only this data can have given it.)
 *
 * A call that met other data fails. What it wrote has the id of the old data in its key, where nobody looks any
 * more: it counts as not done.
 */
import type { Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { ToldTime } from "../support/told-time.ts";
import { lastMessage } from "./bucket.ts";
import { readBack, type Tick, tick } from "./clock.ts";
import type { NatsConnection } from "./connection.ts";
import type { Joined, NatsDataSet } from "./data-set.ts";
import { closedError, storeErrorFrom } from "./errors.ts";
import { type KeptMessage, NO_RESPONDERS, RefusedRequest } from "./replies.ts";

/** An answer and the server's time while it answered. */
export interface Answer<T> {
  readonly value: T;
  readonly storeTimeMs: number;
}

/** That a call met the data that was joined, and the server's time if it was asked for. */
export interface Proof {
  readonly storeTimeMs: number | null;
}

/** The answer to writes; its proof is null where nothing was proven. */
export interface WriteAnswer<T> {
  readonly value: T;
  readonly proof: Proof | null;
}

const WITHOUT_TIME: Proof = Object.freeze({ storeTimeMs: null });

/** The write of a call that serves as its proof if it is done. */
export interface Witness<T> {
  readonly subject: string;
  /** Whether the state must be looked at as well. */
  readonly state: "needed" | "implied";
  /** The sequence that it got; null when it was not written. Throws when nobody was there to write it. */
  sequenceIn(value: T): number | null;
}

export class NatsCalls {
  readonly data: NatsDataSet;
  readonly #connection: NatsConnection;
  readonly #env: Env;
  readonly #time: ToldTime;

  constructor(env: Env, data: NatsDataSet, connection: NatsConnection) {
    this.data = data;
    this.#connection = connection;
    this.#env = env;
    this.#time = new ToldTime(env);
  }

  /** Sends on this connection and no other, all in this turn. */
  async send<T>(joined: Joined, outcome: FailedOutcome, send: () => Promise<T>): Promise<Answer<T>> {
    this.#assertOpen(joined);
    const work = Promise.all([send(), this.#prove(joined)]);
    const [value, storeTimeMs] = await this.#connection.inTime(joined.wire, work, outcome);
    return { value, storeTimeMs };
  }

  /** As `send`, for writes, of which one is the witness. */
  async write<T>(joined: Joined, witness: Witness<T>, send: () => Promise<T>): Promise<WriteAnswer<T>> {
    this.#assertOpen(joined);
    const work = this.#writeWith(joined, witness, send);
    return await this.#connection.inTime(joined.wire, work, "unknown");
  }

  /** The last message of a subject; null when there is none. Sent at once. */
  last({ wire, reads }: Joined, subject: string): Promise<KeptMessage | null> {
    return lastMessage(wire, this.data.layout, reads, subject);
  }

  #assertOpen({ wire }: Joined): void {
    if (this.#connection.isClosed) throw closedError();
    if (!wire.isOpen)
      throw storeErrorFrom(new Error("it ended before a call"), this.data.address, "not-applied");
  }

  async #prove(joined: Joined): Promise<number> {
    const { data } = this;
    const seenBefore = data.lastSequence;
    const sentMs = this.#env.monotonicMs();
    const ticking = tick(joined.wire, data.layout, joined.reads);
    try {
      const [ticked] = await Promise.all([ticking, data.checkState(joined)]);
      return this.#accept(ticked, seenBefore, sentMs);
    } catch (error) {
      throw await this.#explain(error, joined);
    }
  }

  async #writeWith<T>(
    joined: Joined,
    { subject, state, sequenceIn }: Witness<T>,
    send: () => Promise<T>,
  ): Promise<WriteAnswer<T>> {
    const seenBefore = this.data.lastSequence;
    const sentMs = this.#env.monotonicMs();
    const sending = send();
    const reading = this.#time.isFresh ? null : settled(this.last(joined, subject));
    const checking = state === "needed" ? settled(this.data.checkState(joined)) : null;
    const value = await sending;
    try {
      const sequence = sequenceIn(value);
      // The answers to the rest are not waited for: a bucket that is gone gives none.
      if (sequence === null) return { value, proof: null };
      if (checking !== null) unwrapped(await checking);
      if (reading === null) {
        this.data.sawSequence(sequence, seenBefore);
        return { value, proof: WITHOUT_TIME };
      }
      const first = unwrapped(await reading);
      const ticked = await readBack(first, sequence, () => this.last(joined, subject));
      return { value, proof: { storeTimeMs: this.#accept(ticked, seenBefore, sentMs) } };
    } catch (error) {
      throw await this.#explain(error, joined);
    }
  }

  /** The server's time, in milliseconds. */
  #accept({ sequence, atMicros }: Tick, seenBefore: number, sentMs: number): number {
    this.data.sawSequence(sequence, seenBefore);
    this.#time.told(sentMs);
    return Number(atMicros / 1_000n);
  }

  /** When nobody answers for the bucket it may be gone, which is a loss; rejects then. */
  async #explain(error: unknown, joined: Joined): Promise<unknown> {
    if (!(error instanceof RefusedRequest) || error.code !== NO_RESPONDERS) return error;
    await this.data.joinAgain(joined);
    return new StoreError("unreachable", `NATS at ${this.data.address}: the bucket did not answer`, {
      outcome: "not-applied",
    });
  }
}

type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown };

/** Of what may fail before anybody waits for it. */
function settled<T>(promise: Promise<T>): Promise<Settled<T>> {
  return promise.then(
    (value) => ({ ok: true, value }),
    (error: unknown) => ({ ok: false, error }),
  );
}

function unwrapped<T>(result: Settled<T>): T {
  if (!result.ok) throw result.error;
  return result.value;
}

/**
 * The data behind a connection. It is joined once per connection, before anything else is sent there, and
 * every call brings back a proof, pipelined with it in the same round trip:
 *
 *   a message written to the clock key, whose sequence must be above all that this client has seen,
 *   the time at which the server stored it, or a later one of another client: its clock, read while it answered,
 *   the state, which must still be that of the data which was joined.
 *
 * When it is not the data of before, the call fails and all later ones are refused. What such a call wrote has
 * the id of the old data in its key, where nobody looks any more: it counts as not done.
 */
import type { Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../contract.ts";
import type { Lineage } from "../redis/lineage.ts";
import { type BucketInfo, createBucket, lastMessage, lookAtBucket } from "./bucket.ts";
import type { NatsConnection } from "./connection.ts";
import { storeErrorFrom } from "./errors.ts";
import type { NatsLayout } from "./layout.ts";
import {
  beginning,
  continued,
  type DataState,
  decodeState,
  encodeState,
  highest,
  lossError,
} from "./lineage.ts";
import {
  type KeptMessage,
  NO_RESPONDERS,
  RefusedRequest,
  sequenceOf,
  WRONG_LAST_SEQUENCE,
} from "./replies.ts";
import type { NatsWire } from "./wire.ts";

/** The data, as one connection joined it. */
export interface Joined {
  readonly wire: NatsWire;
  readonly id: string;
  readonly reads: BucketInfo["reads"];
}

export interface Proven<T> {
  readonly value: T;
  readonly storeTimeMs: number;
}

export interface DataSetOptions {
  readonly env: Env;
  readonly connection: NatsConnection;
  readonly layout: NatsLayout;
  /** Of a bucket that has to be created. */
  readonly replicas: number;
  /** After how long a loss is accepted without being asked; null for never. */
  readonly acceptAfterMs: number | null;
  /** How long the marker of a deleted key stays, so that everybody who watches hears of it. */
  readonly markerKeptMs?: number;
}

interface Tick {
  readonly sequence: number;
  readonly atMicros: bigint;
}

/** How often another client may change the state while this one joins. */
const MAX_JOIN_ATTEMPTS = 8;
const MAX_CLOCK_READS = 100;
const MARKER_KEPT_MS = 600_000;
export const EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence";

export class NatsDataSet {
  readonly layout: NatsLayout;
  readonly markerKeptMs: number;
  readonly #options: DataSetOptions;
  #state: DataState | null = null;
  #stateText: Buffer = Buffer.alloc(0);
  #bucket: BucketInfo | null = null;
  #joined: Joined | null = null;
  #joining: Promise<void> | null = null;
  #run = "";
  #lastSequence = 0;
  #suspectUpTo = 0;
  #loss: { readonly error: StoreError; readonly sinceMs: number } | null = null;

  constructor(options: DataSetOptions) {
    this.#options = options;
    this.layout = options.layout;
    this.markerKeptMs = options.markerKeptMs ?? MARKER_KEPT_MS;
  }

  get address(): string {
    return this.#options.connection.address;
  }

  /** Known once the data was joined. */
  get lineage(): Lineage {
    if (this.#state === null) throw new Error("the data was not joined yet");
    return this.#state;
  }

  get bucket(): BucketInfo | null {
    return this.#bucket;
  }

  /** Versions up to this sequence may be of writes that were lost: their numbers may stand for others now. */
  get suspectUpTo(): number {
    return this.#suspectUpTo;
  }

  /** Resolves when connected, and on the data of before. */
  async join(): Promise<Joined> {
    for (;;) {
      const joined = this.#current();
      if (joined !== null) return joined;
      const { connection } = this.#options;
      const wire = await connection.ready();
      this.#joining ??= connection.inTime(wire, this.#joinOn(wire), "not-applied").finally(() => {
        this.#joining = null;
      });
      await this.#joining;
    }
  }

  /** Sends on this connection and no other, all in this turn. `outcome` is what is true when no reply comes. */
  async call<T>(joined: Joined, outcome: FailedOutcome, send: () => Promise<T>): Promise<Proven<T>> {
    const { connection } = this.#options;
    if (!joined.wire.isOpen)
      throw storeErrorFrom(new Error("it ended before a call"), this.address, "not-applied");
    const work = Promise.all([send(), this.#prove(joined)]);
    const [value, { atMicros }] = await connection.inTime(joined.wire, work, outcome);
    return { value, storeTimeMs: Number(atMicros / 1_000n) };
  }

  last(joined: Joined, subject: string): Promise<KeptMessage | null> {
    return lastMessage(joined.wire, this.layout, joined.reads, subject);
  }

  /** Goes on with whatever data there is now, with fences above everything that was handed out before. */
  async acceptLoss(): Promise<void> {
    const { connection } = this.#options;
    const wire = await connection.ready();
    await this.#joining?.catch(() => undefined);
    if (this.#loss !== null) await connection.inTime(wire, this.#beginAnew(wire), "not-applied");
  }

  #current(): Joined | null {
    const wire = this.#options.connection.current;
    return this.#loss === null && wire !== null && wire === this.#joined?.wire ? this.#joined : null;
  }

  async #prove(joined: Joined): Promise<Tick> {
    const seenBefore = this.#lastSequence;
    const stateText = this.#stateText;
    try {
      const [tick, standing] = await Promise.all([
        this.#tick(joined.wire, joined.reads),
        this.last(joined, this.layout.stateSubject),
      ]);
      if (tick.sequence <= seenBefore) throw this.#lose("its last writes are gone");
      if (standing?.data.equals(stateText) !== true) this.#follow(standing, joined.id);
      this.#lastSequence = Math.max(this.#lastSequence, tick.sequence);
      return tick;
    } catch (error) {
      if (!(error instanceof RefusedRequest) || error.code !== NO_RESPONDERS) throw error;
      // The bucket does not answer: joining it again tells whether it is gone.
      this.#joined = null;
      await this.#joinOn(joined.wire);
      throw new StoreError("unreachable", `NATS at ${this.address}: the bucket did not answer`, {
        outcome: "not-applied",
      });
    }
  }

  /** Another client changed the state: the data is the same as long as its id is. */
  #follow(standing: KeptMessage | null, id: string): void {
    if (standing === null || standing.isMarker) throw this.#lose("it is empty now");
    const state = decodeState(standing.data.toString());
    if (state === null || state.id !== id) throw this.#lose("its data was replaced");
    this.#adoptState(state, standing.data);
  }

  /** Writes to the clock and reads it back. What is read may be later than what was written, never earlier. */
  async #tick(wire: NatsWire, reads: BucketInfo["reads"]): Promise<Tick> {
    const { clockSubject } = this.layout;
    const ticking = wire.request(clockSubject).then(sequenceOf);
    const reading = lastMessage(wire, this.layout, reads, clockSubject);
    let [sequence, clock] = await Promise.all([ticking, reading]);
    // Where there are replicas a read may overtake the write that it followed.
    for (let attempt = 0; attempt < MAX_CLOCK_READS; attempt += 1) {
      if (clock !== null && clock.sequence >= sequence) return { sequence, atMicros: clock.atMicros };
      clock = await lastMessage(wire, this.layout, reads, clockSubject);
    }
    throw new RefusedRequest(0, "the clock key could not be read back");
  }

  async #joinOn(wire: NatsWire): Promise<void> {
    if (this.#loss !== null) {
      const { env, acceptAfterMs } = this.#options;
      const waitedMs = env.monotonicMs() - this.#loss.sinceMs;
      if (acceptAfterMs === null || waitedMs < acceptAfterMs) throw this.#loss.error;
      return this.#beginAnew(wire);
    }
    const known = this.#state;
    await this.#claim(wire, (found, bucket, tick) => {
      if (known === null) return found === null ? this.#begin(wire, tick) : this.#continue(found, wire, tick);
      if (found === null) throw this.#lose("it is empty now");
      if (found.id !== known.id) throw this.#lose("its data was replaced");
      if (bucket.lastSequence < this.#lastSequence) throw this.#lose("its last writes are gone");
      return this.#continue(found, wire, tick);
    });
  }

  async #beginAnew(wire: NatsWire): Promise<void> {
    const known = this.#state;
    await this.#claim(wire, (found, _bucket, tick) => {
      if (found === null) return this.#begin(wire, tick);
      // Another client has begun anew already, above all that was; otherwise what is left goes on.
      return found.id === known?.id
        ? continued(found, tick.atMicros, wire.serverId)
        : this.#continue(found, wire, tick);
    });
    this.#loss = null;
    const state = this.#state;
    // Caches may hold floors of the old data, so from here on even keys without a record are checked.
    if (state !== null) this.#state = { ...state, raised: highest(state.raised, state.floor) };
  }

  /** Makes the state what `next` says, and joins. Another client may be faster: then all is looked at again. */
  async #claim(
    wire: NatsWire,
    next: (found: DataState | null, bucket: BucketInfo, tick: Tick) => DataState,
  ): Promise<void> {
    const { layout } = this;
    for (let attempt = 0; attempt < MAX_JOIN_ATTEMPTS; attempt += 1) {
      const bucket = await lookAtBucket(wire, layout, this.address);
      if (bucket === null) {
        if (this.#state !== null && this.#loss === null) throw this.#lose("its bucket is gone");
        await createBucket(wire, layout, this.#options.replicas);
        continue;
      }
      const standing = await lastMessage(wire, layout, bucket.reads, layout.stateSubject);
      const found = standing === null || standing.isMarker ? null : decodeState(standing.data.toString());
      const tick = await this.#tick(wire, bucket.reads);
      const state = next(found, bucket, tick);
      const text = Buffer.from(encodeState(state));
      if (state !== found && !(await this.#putState(wire, text, standing?.sequence ?? 0))) continue;
      this.#adopt(wire, bucket, state, state === found && standing !== null ? standing.data : text, tick);
      return;
    }
    const message = `NATS at ${this.address}: other clients keep changing the state of the bucket`;
    throw new StoreError("unreachable", message, { outcome: "not-applied" });
  }

  #begin(wire: NatsWire, { atMicros }: Tick): DataState {
    const id = Buffer.from(this.#options.env.randomBytes(5)).toString("hex");
    return beginning(id, atMicros, wire.serverId, this.#state);
  }

  #continue(found: DataState, { serverId }: NatsWire, { atMicros }: Tick): DataState {
    return found.runs.includes(serverId) ? found : continued(found, atMicros, serverId);
  }

  /** False when another client was faster. */
  async #putState(wire: NatsWire, text: Buffer, expected: number): Promise<boolean> {
    try {
      sequenceOf(await wire.request(this.layout.stateSubject, text, { [EXPECTED_SEQUENCE]: `${expected}` }));
      return true;
    } catch (error) {
      if (error instanceof RefusedRequest && error.code === WRONG_LAST_SEQUENCE) return false;
      throw error;
    }
  }

  #adopt(wire: NatsWire, bucket: BucketInfo, state: DataState, text: Buffer, tick: Tick): void {
    const isSame = this.#run === "" || (this.#run === wire.serverId && this.#loss === null);
    const sequence = Math.max(bucket.lastSequence, tick.sequence);
    if (!isSame) this.#suspectUpTo = Math.max(this.#suspectUpTo, this.#lastSequence, sequence);
    this.#lastSequence = sequence;
    this.#run = wire.serverId;
    this.#bucket = bucket;
    this.#adoptState(state, text);
    this.#joined = { wire, id: state.id, reads: bucket.reads };
  }

  #adoptState(state: DataState, text: Buffer): void {
    const known = this.#state;
    const raised = known?.id === state.id ? highest(known.raised, state.raised) : state.raised;
    this.#state = { ...state, raised };
    this.#stateText = text;
  }

  #lose(what: string): StoreError {
    const error = lossError(this.address, what);
    this.#loss ??= { error, sinceMs: this.#options.env.monotonicMs() };
    return error;
  }
}

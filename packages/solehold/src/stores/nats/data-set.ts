/**
 * The data behind a connection, and whether it still is the data of before. It is joined once per connection,
 * before anything else is sent there. When it is not what it was, all is refused until the loss is accepted.
 */
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import type { Lineage } from "../support/lineage.ts";
import { type BucketInfo, createBucket, lastMessage, lookAtBucket, unlessKnown } from "./bucket.ts";
import { type Tick, tick } from "./clock.ts";
import type { NatsConnection } from "./connection.ts";
import type { NatsLayout } from "./layout.ts";
import {
  beginning,
  continued,
  DataLossError,
  type DataState,
  decodeState,
  encodeState,
  highest,
} from "./lineage.ts";
import { type KeptMessage, RefusedRequest, sequenceOf, WRONG_LAST_SEQUENCE } from "./replies.ts";
import type { NatsWire } from "./wire.ts";

/** The data, as one connection joined it. */
export interface Joined {
  readonly wire: NatsWire;
  readonly id: string;
  readonly reads: BucketInfo["reads"];
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

/** How often another client may change the state while this one joins. */
const MAX_JOIN_ATTEMPTS = 8;
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
  #onNewBeginning: () => void = () => undefined;

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

  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Versions up to this sequence may be of writes that were lost: their numbers may stand for others now. */
  get suspectUpTo(): number {
    return this.#suspectUpTo;
  }

  /** Calls back whenever a loss was accepted, by whomever. */
  onNewBeginning(callback: () => void): void {
    this.#onNewBeginning = callback;
  }

  /** Null where it has to be joined first. */
  get current(): Joined | null {
    const wire = this.#options.connection.current;
    return this.#loss === null && wire !== null && wire === this.#joined?.wire ? this.#joined : null;
  }

  /** Resolves when connected, and on the data of before. */
  async join(): Promise<Joined> {
    for (;;) {
      const joined = this.current;
      if (joined !== null) return joined;
      const { connection } = this.#options;
      const wire = await connection.ready();
      this.#joining ??= connection.inTime(wire, this.#joinOn(wire), "not-applied").finally(() => {
        this.#joining = null;
      });
      await this.#joining;
    }
  }

  /** A call that began when `seenBefore` was the last sequence has written a message with this one. */
  sawSequence(sequence: number, seenBefore: number): void {
    if (sequence <= seenBefore) throw this.#lose("its last writes are gone");
    this.#lastSequence = Math.max(this.#lastSequence, sequence);
  }

  /** Rejects when the state is not that of the data which was joined. Sent at once. */
  async checkState({ wire, reads, id }: Joined): Promise<void> {
    const { layout } = this;
    const standing = await unlessKnown(wire, layout, reads, layout.stateSubject, this.#stateText);
    if (standing !== "known") this.#follow(standing, id);
  }

  /** The bucket does not answer: joining it again tells whether it is gone. */
  async joinAgain({ wire }: Joined): Promise<void> {
    this.#joined = null;
    await this.#joinOn(wire);
  }

  /** Goes on with whatever data there is now, with fences above everything that was handed out before. */
  async acceptLoss(): Promise<void> {
    const { connection } = this.#options;
    const wire = await connection.ready();
    await this.#joining?.catch(() => undefined);
    if (this.#loss !== null) await connection.inTime(wire, this.#beginAnew(wire), "not-applied");
  }

  /** Another client changed the state: the data is the same as long as its id is. */
  #follow(standing: KeptMessage | null, id: string): void {
    if (standing === null || standing.isMarker) throw this.#lose("it is empty now");
    const state = decodeState(standing.data.toString());
    if (state === null || state.id !== id) throw this.#lose("its data was replaced");
    this.#adoptState(state, standing.data);
  }

  async #joinOn(wire: NatsWire): Promise<void> {
    if (this.#loss !== null) {
      const { env, acceptAfterMs } = this.#options;
      const waitedMs = env.monotonicMs() - this.#loss.sinceMs;
      if (acceptAfterMs === null || waitedMs < acceptAfterMs) throw this.#loss.error;
      return this.#beginAnew(wire);
    }
    const known = this.#state;
    await this.#claim(wire, (found, bucket, now) => {
      if (known === null) return found === null ? this.#begin(wire, now) : this.#continue(found, wire, now);
      if (found === null) throw this.#lose("it is empty now");
      if (found.id !== known.id) throw this.#lose("its data was replaced");
      if (bucket.lastSequence < this.#lastSequence) throw this.#lose("its last writes are gone");
      return this.#continue(found, wire, now);
    });
  }

  async #beginAnew(wire: NatsWire): Promise<void> {
    const known = this.#state;
    await this.#claim(wire, (found, _bucket, now) => {
      if (found === null) return this.#begin(wire, now);
      // Another client has begun anew already, above all that was; otherwise what is left goes on.
      return found.id === known?.id
        ? continued(found, now.atMicros, wire.serverId)
        : this.#continue(found, wire, now);
    });
    this.#loss = null;
    const state = this.#state;
    // Caches may hold floors of the old data, so from here on even keys without a record are checked.
    if (state !== null) this.#state = { ...state, raised: highest(state.raised, state.floor) };
    this.#onNewBeginning();
  }

  /** Makes the state what `next` says, and joins. Another client may be faster: then all is looked at again. */
  async #claim(
    wire: NatsWire,
    next: (found: DataState | null, bucket: BucketInfo, now: Tick) => DataState,
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
      const ticked = await tick(wire, layout, bucket.reads);
      const state = next(found, bucket, ticked);
      const text = Buffer.from(encodeState(state));
      if (state !== found && !(await this.#putState(wire, text, standing?.sequence ?? 0))) continue;
      this.#adopt(wire, bucket, state, state === found && standing !== null ? standing.data : text, ticked);
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

  #adopt(wire: NatsWire, bucket: BucketInfo, state: DataState, text: Buffer, now: Tick): void {
    const isSame = this.#run === "" || (this.#run === wire.serverId && this.#loss === null);
    const sequence = Math.max(bucket.lastSequence, now.sequence);
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
    const error = new DataLossError(this.address, what);
    this.#loss ??= { error, sinceMs: this.#options.env.monotonicMs() };
    return error;
  }
}

/**
 * Watches: one stream of etcd for each, so that the server sends only what was asked for, with the records in it. A
 * stream that is lost goes on, on another member if need be, from the revision after the last one received, so nothing
 * is missing. Only when that revision was compacted away, or the cluster lost its data, begins the watch anew from the
 * present and says "reset".
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import {
  ABSENT,
  isInScope,
  type StoreEvent,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { Reconnecting } from "../support/reconnecting.ts";
import type { Access } from "./access.ts";
import type { OpenStream } from "./grpc.ts";
import { type KeyRange, storedFrom } from "./layout.ts";
import { DELETE_EVENT, WATCH, type WatchRequest, type WatchResponse } from "./messages.ts";

const RESUME_PAUSE_MS = 20;

export interface WatchParts extends Access {
  readonly env: Env;
}

export class EtcdWatch implements StoreWatch {
  readonly #parts: WatchParts;
  readonly #scope: WatchScope;
  readonly #range: KeyRange;
  readonly #listener: WatchListener;
  readonly #streams: Reconnecting<OpenStream>;
  /** Where to go on; zero: from now on. */
  #nextRevision = 0n;
  /** Events may be missing, and the listener does not know yet. */
  #isReset = false;
  #lossesSeen: number;
  #closed = false;

  private constructor(parts: WatchParts, scope: WatchScope, listener: WatchListener) {
    this.#parts = parts;
    this.#scope = scope;
    this.#range = parts.layout.rangeOf(scope);
    this.#listener = listener;
    this.#lossesSeen = parts.cluster.losses;
    this.#streams = new Reconnecting({
      env: parts.env,
      name: "etcd",
      open: () => this.#open(),
      close: ({ cancel }) => cancel(),
    });
  }

  /** Resolves when the server has said from which revision on it will send events. */
  static async open(parts: WatchParts, scope: WatchScope, listener: WatchListener): Promise<EtcdWatch> {
    const watch = new EtcdWatch(parts, scope, listener);
    await parts.cluster.repeated(() => watch.#streams.get());
    return watch;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#streams.close();
  }

  async #open(): Promise<OpenStream> {
    const stream = await this.#parts.cluster.stream(
      WATCH,
      () => this.#request(),
      (response) => this.#receive(response),
    );
    void stream.ended.then(() => this.#resume(stream));
    return stream;
  }

  async #resume(lost: OpenStream): Promise<void> {
    const { env } = this.#parts;
    await this.#streams.lose(lost);
    while (!this.#closed) {
      await delay(env, jittered(env, RESUME_PAUSE_MS, 0.5));
      const isOpen = await this.#streams.get().then(
        () => true,
        () => false,
      );
      if (isOpen) return;
    }
  }

  /** With reports of progress, so that a quiet watch does not fall behind, and large revisions in pieces. */
  #request(): WatchRequest {
    const { losses } = this.#parts.cluster;
    if (losses !== this.#lossesSeen) this.#beginAnew();
    this.#lossesSeen = losses;
    const startRevision = String(this.#nextRevision);
    return { create: { ...this.#range, startRevision, progressNotify: true, fragment: true } };
  }

  #receive({
    header,
    created,
    canceled,
    cancelReason,
    compactRevision,
    fragment,
    events,
  }: WatchResponse): void {
    if (canceled && compactRevision !== "0") this.#beginAnew();
    if (canceled) throw new Error(`etcdserver: watch canceled: ${cancelReason}`);
    for (const event of events) this.#announce(event);
    const last = events.at(-1)?.kv;
    const revision = BigInt(header?.revision ?? 0);
    // Of a revision that comes in pieces the rest is still missing.
    if (last) this.#nextRevision = BigInt(last.modRevision) + (fragment ? 0n : 1n);
    else if (!created || this.#nextRevision === 0n) this.#nextRevision = revision + 1n;
    if (created && this.#isReset) {
      this.#isReset = false;
      this.#send({ kind: "reset" });
    }
  }

  #beginAnew(): void {
    this.#nextRevision = 0n;
    this.#isReset = true;
  }

  #announce({ type, kv }: WatchResponse["events"][number]): void {
    const key = kv === null ? null : this.#parts.layout.keyOf(kv.key);
    if (kv === null || key === null || !isInScope(this.#scope, key)) return;
    const stored = type === DELETE_EVENT ? ABSENT : storedFrom(key, kv);
    this.#send({ kind: "changed", key, stored });
  }

  /** In a turn of its own, so that a listener that throws is its owner's problem alone. */
  #send(event: StoreEvent): void {
    this.#parts.env.defer(() => {
      if (!this.#closed) this.#listener(event);
    });
  }
}

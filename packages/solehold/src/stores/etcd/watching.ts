/**
 * Watches: one stream of etcd for each, so that the server sends only what was asked for, with the records in it. A
 * stream that is lost goes on, on another member if need be, from the revision after the last one received, so nothing
 * is missing. Only when that revision was compacted away, or the cluster lost data, the watch begins anew in the present
 * and says "reset".
 */
import { delay, type Env, jittered } from "../../env/index.ts";
import { ABSENT, isInScope, type WatchListener, type WatchScope } from "../../store/index.ts";
import { storedFrom } from "./layout.ts";
import { DELETE_EVENT, type WatchRequest, type WatchResponse } from "./messages.ts";
import type { Access } from "./records.ts";

export type WatchOptions = Access & Readonly<{ env: Env; scope: WatchScope; listener: WatchListener }>;

const RESUME_PAUSE_MS = 100;

export class EtcdWatch {
  readonly #options: WatchOptions;
  readonly #ending = new AbortController();
  /** Where to go on; zero is the present. */
  #nextRevision = 0n;
  /** Events may be missing, and the listener does not know yet. */
  #isReset = false;
  #losses: number;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#losses = options.cluster.identity.losses;
  }

  /** Resolves when the server has said from which revision on it will send events. */
  begin(): Promise<void> {
    const { cluster } = this.#options;
    return cluster.repeated(() => new Promise((resolve, reject) => this.#follow(resolve).catch(reject)));
  }

  async close(): Promise<void> {
    this.#ending.abort();
  }

  get #isOver(): boolean {
    return this.#ending.signal.aborted || this.#options.cluster.isClosed;
  }

  /** Rejects when a stream could not be set up. One that was is followed, and later losses are made good. */
  async #follow(onBegun: () => void): Promise<void> {
    const { env, cluster } = this.#options;
    const { signal } = this.#ending;
    let isBegun = false;
    try {
      for await (const response of cluster.watch(() => this.#request(), signal)) {
        this.#receive(response);
        isBegun = true;
        onBegun();
      }
    } catch (error) {
      if (!isBegun) throw error;
    }
    for (let isLost = true; isLost && !this.#isOver; ) {
      await delay(env, jittered(env, RESUME_PAUSE_MS, 0.5), signal);
      isLost = (await this.begin().catch(() => "failed")) === "failed";
    }
  }

  /** With reports of progress, so that a quiet watch does not fall behind, and large revisions in pieces. */
  #request(): WatchRequest {
    const { cluster, layout, scope } = this.#options;
    if (cluster.identity.losses !== this.#losses) this.#beginAnew();
    this.#losses = cluster.identity.losses;
    const startRevision = String(this.#nextRevision);
    return { create: { ...layout.rangeOf(scope), startRevision, progressNotify: true, fragment: true } };
  }

  #beginAnew(): void {
    this.#nextRevision = 0n;
    this.#isReset = true;
  }

  #receive(response: WatchResponse): void {
    const { layout, scope } = this.#options;
    const { header, created, canceled, cancelReason, compactRevision, fragment, events } = response;
    if (canceled && compactRevision !== "0") this.#beginAnew();
    if (canceled) throw new Error(`etcdserver: watch canceled: ${cancelReason}`);
    for (const { type, kv } of events) {
      const key = kv && layout.keyOf(kv.key);
      if (!key || !isInScope(scope, key)) continue;
      this.#send({ kind: "changed", key, stored: type === DELETE_EVENT ? ABSENT : storedFrom(key, kv) });
    }
    const last = events.at(-1)?.kv;
    // Of a revision that comes in pieces the rest is still missing.
    if (last) this.#nextRevision = BigInt(last.modRevision) + (fragment ? 0n : 1n);
    else if (!created || this.#nextRevision === 0n) this.#nextRevision = BigInt(header?.revision ?? 0) + 1n;
    if (created && this.#isReset) this.#send({ kind: "reset" });
    if (created) this.#isReset = false;
  }

  /** In a turn of its own, so that a listener that throws is its owner's problem alone. */
  #send(event: Parameters<WatchListener>[0]): void {
    this.#options.env.defer(() => {
      if (!this.#isOver) this.#options.listener(event);
    });
  }
}

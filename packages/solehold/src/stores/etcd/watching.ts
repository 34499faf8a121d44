/**
 * News, from etcd's own watch: one stream for each watch, so a client hears only what it asked for, with the
 * records in it. A stream that is lost goes on, on another member if need be, from the revision after the last
 * one heard, so nothing is missing. Only when that revision was compacted away is the listener told to look for
 * itself.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import { isInScope, type StoreEvent, type StoreWatch, type WatchScope } from "../../store/index.ts";
import type { Calls, OpenStream } from "./calls.ts";
import { closedError, silence } from "./failures.ts";
import { type EtcdLayout, type KeyRange, storedFrom } from "./layout.ts";
import { decodeWatch, encodeWatch, type KeyValue, type WatchResponse } from "./messages.ts";

const WATCH_PATH = "/etcdserverpb.Watch/Watch";
const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;
const RESET: StoreEvent = Object.freeze({ kind: "reset" });

export interface WatchParts {
  readonly env: Env;
  readonly calls: Calls;
  readonly layout: EtcdLayout;
  readonly memberTimeoutMs: number;
}

export class EtcdWatch implements StoreWatch {
  readonly #parts: WatchParts;
  readonly #scope: WatchScope;
  readonly #range: KeyRange;
  readonly #listener: (event: StoreEvent) => void;
  /** Where to go on; zero before the first answer: from now on. */
  #nextRevision = 0n;
  #stream: OpenStream | null = null;
  #timer: Timer | null = null;
  #failures = 0;
  #closed = false;

  private constructor(parts: WatchParts, scope: WatchScope, listener: (event: StoreEvent) => void) {
    this.#parts = parts;
    this.#scope = scope;
    this.#range = parts.layout.rangeOf(scope);
    this.#listener = listener;
  }

  /** Resolves when the server has said from which revision on it will tell. */
  static async open(
    parts: WatchParts,
    scope: WatchScope,
    listener: (event: StoreEvent) => void,
  ): Promise<EtcdWatch> {
    const watch = new EtcdWatch(parts, scope, listener);
    await parts.calls.repeated(() => watch.#begin());
    return watch;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#stream?.end();
    this.#stream = null;
  }

  /** One attempt: resolves when the stream is set up, rejects when it could not be. Later losses are mended. */
  #begin(): Promise<void> {
    const { env, calls, memberTimeoutMs } = this.#parts;
    return new Promise((resolve, reject) => {
      let stream: OpenStream | null = null;
      let timer: Timer | null = null;
      let begun = false;
      const fail = (cause: unknown): void => {
        timer?.cancel();
        stream?.end();
        const error = stream?.failed(cause) ?? cause;
        if (!begun) reject(error);
        else if (!this.#closed) this.#retry();
      };
      const onMessage = (message: Uint8Array): void => {
        try {
          const response = decodeWatch(message);
          this.#hear(response);
          if (!response.created) return;
          begun = true;
          timer?.cancel();
          this.#failures = 0;
          resolve();
        } catch (error) {
          fail(error);
        }
      };
      const first = encodeWatch({ ...this.#range, startRevision: this.#nextRevision });
      calls.stream(WATCH_PATH, first, { onMessage, onEnd: fail }).then((opened) => {
        stream = opened;
        this.#stream = opened;
        const { address } = opened;
        timer = env.timer(memberTimeoutMs, () => fail(silence(address, memberTimeoutMs, "not-applied")));
        if (this.#closed) fail(closedError());
      }, fail);
    });
  }

  #hear({ header, created, canceled, cancelReason, compactRevision, fragment, events }: WatchResponse): void {
    if (canceled && compactRevision > 0n) {
      this.#nextRevision = compactRevision;
      this.#tell(RESET);
    }
    if (canceled) throw new Error(`etcdserver: watch canceled: ${cancelReason}`);
    for (const event of events) this.#announce(event);
    const last = events.at(-1);
    // Of a revision that comes in pieces the rest is still missing.
    if (last !== undefined) this.#nextRevision = last.modRevision + (fragment ? 0n : 1n);
    else if (!created || this.#nextRevision === 0n) this.#nextRevision = header.revision + 1n;
  }

  /** What was deleted is no record, and what is damaged is none either. */
  #announce(pair: KeyValue): void {
    const key = this.#parts.layout.keyOf(pair.key);
    if (key === null || !isInScope(this.#scope, key)) return;
    const stored = storedFrom(key, pair);
    this.#tell({ kind: "changed", key, record: stored.kind === "found" ? stored.record : null });
  }

  #retry(): void {
    const { env } = this.#parts;
    const backoffMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LAST_RETRY_MS);
    this.#failures += 1;
    this.#timer = env.timer(jittered(env, backoffMs, 0.3), () => {
      this.#begin().catch(() => {
        if (!this.#closed) this.#retry();
      });
    });
  }

  /** In a turn of its own, so that a listener that throws is its owner's problem alone. */
  #tell(event: StoreEvent): void {
    this.#parts.env.defer(() => {
      if (!this.#closed) this.#listener(event);
    });
  }
}

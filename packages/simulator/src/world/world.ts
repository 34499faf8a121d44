/**
 * The simulated world: one thread, one heap of events, virtual time. The same seed gives the same run,
 * event for event; `hash` rolls over every event so that two runs can be compared.
 *
 * Between two events all promises settle (see barrier.ts). That does not cover real I/O nor code that uses
 * `nextTick` itself; simulated code defers through its `Env` instead, and real timers are trapped (see trap.ts).
 */
import { Heap } from "solehold/internal";
import { barrier } from "./barrier.ts";
import { type EventOwner, isBefore, type QueuedEvent } from "./queue.ts";
import { type Choices, hashText, type RandomStream } from "./random.ts";

export interface TimelineEntry {
  readonly atMs: number;
  readonly who: string;
  /** What happened, without its details. */
  readonly label: string;
  readonly text: string;
  /** The end of something that lasts, such as a pause. */
  readonly untilMs?: number;
}

/** A message between two machines. */
export interface SentMessage {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly sentMs: number;
  /** Null while it is on its way, and for ever if it is lost. */
  arrivedMs: number | null;
  readonly lost: boolean;
}

export interface Scheduled {
  cancel(): void;
}

const FLOAT_BITS = new DataView(new ArrayBuffer(8));

export class World {
  readonly choices: Choices;
  readonly #ties: RandomStream;
  readonly #queue = new Heap<QueuedEvent>(isBefore);
  readonly #deferred: { readonly owner: { readonly dead: boolean }; readonly run: () => void }[] = [];
  /** Null unless the run is recorded: text costs more than the run itself. */
  readonly timeline: TimelineEntry[] | null;
  /** Null unless the run is recorded. */
  readonly messages: SentMessage[] | null;
  nowMs = 0;
  events = 0;
  #hash = 0x811c9dc5;

  constructor(choices: Choices, options: { readonly record: "yes" | "no" }) {
    this.choices = choices;
    this.#ties = choices.stream("ties");
    this.timeline = options.record === "yes" ? [] : null;
    this.messages = options.record === "yes" ? [] : null;
  }

  get hash(): number {
    return this.#hash;
  }

  schedule(atMs: number, owner: EventOwner | null, label: string, run: () => void): Scheduled {
    const event: QueuedEvent = {
      atMs: Math.max(atMs, this.nowMs),
      tie: this.#ties.next(),
      owner,
      label,
      run,
      cancelled: false,
    };
    this.#queue.push(event);
    return {
      cancel: () => {
        event.cancelled = true;
      },
    };
  }

  /** An event that was held back happens now. It stays the same event, so it can still be cancelled. */
  release(event: QueuedEvent): void {
    event.atMs = this.nowMs;
    event.tie = this.#ties.next();
    this.#queue.push(event);
  }

  /** At the end of the current turn: after all promises that are ready. */
  defer(owner: { readonly dead: boolean }, run: () => void): void {
    this.#deferred.push({ owner, run });
  }

  /**
   * Something worth a line in the time-line. The label counts for the hash, the detail and how long it lasts are for
   * people.
   */
  note(who: string, label: string, detail?: () => string, lastsMs?: number): void {
    this.#mix(hashText(label, hashText(who)));
    if (this.timeline === null) return;
    const text = detail === undefined ? label : `${label} ${detail()}`;
    const until = lastsMs === undefined ? {} : { untilMs: this.nowMs + lastsMs };
    this.timeline.push({ atMs: this.nowMs, who, label, text, ...until });
  }

  /**
   * Runs events up to `untilMs`; `afterEach` looks at the world after each and ends the run by "stop".
   * Afterwards the time is `untilMs`, unless the run was stopped.
   */
  async run(untilMs: number, afterEach: () => "go on" | "stop"): Promise<void> {
    await barrier();
    await this.#settle();
    for (;;) {
      const event = this.#queue.first;
      if (event === undefined || event.atMs > untilMs) break;
      this.#queue.pop();
      if (event.cancelled) continue;
      if (event.owner?.frozen === true) {
        event.owner.hold(event);
        continue;
      }
      this.nowMs = event.atMs;
      this.#count(event);
      event.run();
      await this.#settle();
      if (afterEach() === "stop") return;
    }
    this.nowMs = untilMs;
  }

  async #settle(): Promise<void> {
    await barrier();
    for (let next = this.#deferred.shift(); next !== undefined; next = this.#deferred.shift()) {
      if (next.owner.dead) continue;
      next.run();
      await barrier();
    }
  }

  #count(event: QueuedEvent): void {
    this.events += 1;
    FLOAT_BITS.setFloat64(0, event.atMs);
    this.#mix(FLOAT_BITS.getUint32(0));
    this.#mix(FLOAT_BITS.getUint32(4));
    this.#mix(hashText(event.label, event.owner === null ? 0 : hashText(event.owner.name)));
  }

  #mix(value: number): void {
    this.#hash = (Math.imul(this.#hash ^ value, 0x01000193) ^ (value >>> 16)) >>> 0;
  }
}

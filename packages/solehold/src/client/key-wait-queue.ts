/**
 * What this process knows of a key that somebody in it waits for, and when the head of its line tries for it: woken by
 * the store's news where it has any. News is only a hint to look; a jittered look now and then makes up for news that
 * got lost, and the end of the current lease is looked for when it is due. Who tries when in a crowd of processes is
 * written in waiting-crowd.ts.
 *
 * A room is kept for a moment after the last has left: in a crowd they come back, and it knows then whose turn it is.
 */
import { keyId, type LeaseKey } from "../core/index.ts";
import { jittered, type Timer } from "../env/index.ts";
import type { AppliedOutcome, CommandOutcome } from "../executor/index.ts";
import type { QueueTicket, StoredRecord, StoreEvent, StoreWatch } from "../store/index.ts";
import { heldForMs, isWorthWaiting } from "../waiting/index.ts";
import { type FailedOutcome, failureOf, timeoutOf } from "./outcome-errors.ts";
import { Crowd } from "./turn-order.ts";
import type { LinesOptions, Patience, Place } from "./wait-queues.ts";

/** Between two attempts while the store cannot be reached. */
const RETRY_UNAVAILABLE_MS = 200;
/** With news the look is insurance; without news it is the only way. */
const LOOK_WITH_NEWS_MS = 2_000;
/** For who never saw when the current lease ends. */
const FIRST_LOOK_WITH_NEWS_MS = 500;
const FIRST_LOOK_WITHOUT_NEWS_MS = 50;
const SLOWEST_LOOK_MS = 1_000;
/** Everybody sees a lease end at the same instant; only one can have it. */
const SPREAD_AT_EXPIRY_MS = 10;
/** Timers are no more exact than this. */
const LEAST_HOLD_BACK_MS = 1;
const REST_MS = 2_000;
const MOST_RESTING = 64;

/** What a waiter knows when it decides how long to wait before the next look. */
export interface Looking {
  readonly heldForMs: number | null;
  readonly looks: number;
  /** How often in a row it looked after the end of the lease, and did not get it. */
  readonly overdueLooks: number;
  readonly news: "yes" | "no";
}

export class Room {
  readonly #key: LeaseKey;
  readonly #id: string;
  readonly #places: readonly Place[];
  readonly #options: LinesOptions;
  /** Of all rooms, those that nobody is in, the oldest first. */
  readonly #resting: Set<Room>;
  readonly #crowd = new Crowd();
  #watch: Promise<StoreWatch | null> | null = null;
  /** Whether every change from now on is announced. */
  #news: "yes" | "no" = "no";
  /** Where the store keeps a line for the key, this process's place in it. */
  #line: QueueTicket | null = null;
  #isInLine = false;
  /** What was heard or seen last; "unknown" while an attempt is under way and nothing was heard since it began. */
  #state: "free" | "held" | "unknown" = "unknown";
  /** When the lease ends that was seen last, on the monotonic clock. */
  #heldUntilMs: number | null = null;
  /** The grant that was given back last, by what marks it. */
  #freedGrant: bigint | null = null;
  #isFailing = false;
  /** The head may try now. */
  #isDue = false;
  /** Whether the next attempt is made because the key was said to be free. */
  #isRacing = false;
  #holdBack: Timer | null = null;
  #freed: StoredRecord | null = null;
  #rest: Timer | null = null;
  #onGone: () => void = () => undefined;

  constructor(key: LeaseKey, places: readonly Place[], options: LinesOptions, resting: Set<Room>) {
    this.#key = key;
    this.#id = keyId(key);
    this.#places = places;
    this.#options = options;
    this.#resting = resting;
  }

  /** `first` is how an attempt ended that was made before the room was there. */
  async wait(
    place: Place,
    patience: Patience,
    startedMs: number,
    first: FailedOutcome | null,
  ): Promise<AppliedOutcome> {
    const { env } = this.#options;
    const { waitMs, signal } = patience;
    const leftMs = (): number => waitMs - (env.monotonicMs() - startedMs);
    if (first !== null) this.#failed(first);
    let last = first;
    let overdueLooks = 0;
    for (let looks = first === null ? 0 : 1; ; ) {
      signal?.throwIfAborted();
      if (leftMs() <= 0) throw timeoutOf(this.#key, last, waitMs);
      const pauseMs = await this.#pauseMs(place, looks, overdueLooks);
      const pause = pauseMs <= 0 ? "over" : await this.#pause(place, Math.min(pauseMs, leftMs()), signal);
      signal?.throwIfAborted();
      if (pause === "woken" || this.#places[0] !== place) continue;
      if (this.#mayLookFromLine() && pauseMs > 0 && leftMs() > 0) continue;
      const outcome = await this.#try(patience);
      if (outcome.kind === "applied") return outcome;
      last = outcome;
      looks += 1;
      overdueLooks = heldForMs(outcome) === 0 ? overdueLooks + 1 : 0;
    }
  }

  /** Somebody of this process has it now. */
  won(outcome: AppliedOutcome): void {
    this.#settle();
    this.#isFailing = false;
    this.#state = "held";
    this.#heldUntilMs = this.#options.env.monotonicMs() + outcome.validForMs;
    this.#crowd.won();
    this.#line?.leave("served");
    this.#isInLine = false;
  }

  /** Nobody is in it. Without news it would know nothing when they come back. */
  rest(onGone: () => void): void {
    this.#onGone = onGone;
    this.#line?.leave("gone");
    this.#isInLine = false;
    this.#rest?.cancel();
    this.#resting.delete(this);
    if (this.#news === "no") {
      this.close();
      return;
    }
    this.#resting.add(this);
    this.#rest = this.#options.env.timer(REST_MS, () => this.close());
    const [oldest] = this.#resting;
    if (this.#resting.size > MOST_RESTING) oldest?.close();
  }

  /** Unless somebody has come. */
  close(): void {
    this.#rest?.cancel();
    this.#resting.delete(this);
    if (this.#places.length > 0) return;
    this.#settle();
    this.#watch?.then((watch) => watch?.close()).catch(() => undefined);
    this.#onGone();
  }

  /** How long to wait for news before looking; 0 to look at once. */
  async #pauseMs(place: Place, looks: number, overdueLooks: number): Promise<number> {
    const { env } = this.#options;
    // Only the head looks; the others are woken when it leaves.
    if (this.#places[0] !== place) return Number.MAX_SAFE_INTEGER;
    if (this.#isFailing) return this.#isDue ? 0 : RETRY_UNAVAILABLE_MS;
    if (looks === 0 && !this.#isHeldByAllSigns()) return 0;
    const newsBefore = this.#news;
    await this.#awaitNews();
    await this.#enterLine();
    // What changed between the last look and the first news was announced to nobody; entering a line shows it.
    if ((this.#news !== newsBefore && this.#line === null) || this.#isDue) return 0;
    const heldForMs = this.#heldUntilMs === null ? null : this.#heldUntilMs - env.monotonicMs();
    return lookAgainMs(env, { heldForMs, looks, overdueLooks, news: this.#news });
  }

  /** Where the store keeps a line it tells when it is this process's turn; until then nothing is heard. */
  async #enterLine(): Promise<void> {
    if (this.#line === null || this.#isInLine || this.#isDue) return;
    this.#isInLine = true;
    await this.#line.enter().catch(() => {
      this.#isInLine = false;
    });
  }

  /** In a line a look is to enter it again, which says whether the key is free; unless its lease may be over. */
  #mayLookFromLine(): boolean {
    const isHeld = (this.#heldUntilMs ?? 0) > this.#options.env.monotonicMs();
    if (this.#line === null || this.#isDue || !this.#isInLine || !isHeld) return false;
    this.#isInLine = false;
    return true;
  }

  /** Whether who comes now need not look: somebody holds it, and it will be heard or seen when that ends. */
  #isHeldByAllSigns(): boolean {
    const { env } = this.#options;
    if (this.#state === "free" && this.#holdBack === null && !this.#isDue) this.#race();
    if (this.#state === "free") return !this.#isDue;
    if (this.#state === "unknown") return false;
    return (this.#heldUntilMs ?? 0) > env.monotonicMs() || (this.#news === "yes" && this.#crowd.others > 0);
  }

  #pause(place: Place, forMs: number, signal: AbortSignal | undefined): Promise<"woken" | "over"> {
    return new Promise((resolve) => {
      const end = (how: "woken" | "over"): void => {
        timer.cancel();
        signal?.removeEventListener("abort", wake);
        place.wake = null;
        resolve(how);
      };
      const wake = (): void => end("woken");
      const timer = this.#options.env.timer(forMs, () => end("over"), { keepAlive: true });
      signal?.addEventListener("abort", wake, { once: true });
      place.wake = wake;
    });
  }

  async #try(patience: Patience): Promise<CommandOutcome> {
    const { env, executor } = this.#options;
    const wasRacing = this.#isRacing;
    const freed = this.#freed;
    this.#settle();
    this.#state = "unknown";
    if (freed !== null) executor.onHint?.(this.#key, freed);
    const startedMs = env.monotonicMs();
    const outcome = await patience.attempt();
    if (outcome.kind !== "unsettled") this.#crowd.took(env.monotonicMs() - startedMs);
    if (outcome.kind === "applied") this.won(outcome);
    else {
      if (wasRacing && outcome.kind === "refused") this.#crowd.lost(() => env.random());
      this.#failed(outcome);
    }
    return outcome;
  }

  /** An attempt did not get it. Throws what ends the wait. */
  #failed(outcome: FailedOutcome): void {
    this.#isFailing = outcome.kind === "unsettled";
    const forMs = heldForMs(outcome);
    this.#heldUntilMs = forMs === null ? null : this.#options.env.monotonicMs() + forMs;
    // What was heard while the attempt was under way may be newer.
    if (this.#state === "unknown" && outcome.kind === "refused") this.#state = "held";
    if (!isWorthWaiting(outcome)) throw failureOf(this.#key, outcome);
  }

  /** Asks for news; resolves once it would come, or never will. A watch that fails makes waiting slower, never wrong. */
  async #awaitNews(): Promise<void> {
    if (this.#news === "yes") return;
    this.#watch ??= this.#listen().catch(() => null);
    if ((await this.#watch) !== null) this.#news = "yes";
  }

  async #listen(): Promise<StoreWatch | null> {
    const { executor } = this.#options;
    const hear = (event: StoreEvent): void => this.#hear(event);
    this.#line = (await executor.joinQueue?.(this.#key, hear)?.catch(() => null)) ?? null;
    if (this.#line !== null) return this.#line;
    const { tenant, name } = this.#key;
    return await executor.watch({ tenant, prefix: name }, hear);
  }

  #hear(event: StoreEvent): void {
    if (event.kind === "reset") {
      this.#settle();
      this.#state = "unknown";
      this.#isInLine = false;
      this.#wakeHead();
      return;
    }
    if (keyId(event.key) !== this.#id) return;
    const { stored } = event;
    const record = stored?.kind === "found" ? stored.record : null;
    const grant = record?.generation ?? null;
    if (record?.state === "held") {
      // It was overtaken by the news that the same grant was given back.
      if (grant !== null && grant === this.#freedGrant) return;
      this.#settle();
      this.#state = "held";
    } else {
      this.#settle();
      this.#freedGrant = grant;
      this.#state = "free";
      this.#isInLine = false;
      this.#heldUntilMs = null;
      this.#freed = stored;
      if (this.#line === null) this.#crowd.freed(record?.holder ?? null);
      this.#race();
    }
  }

  /** It is free: the head tries now, or once it is its turn. */
  #race(): void {
    const { env } = this.#options;
    this.#isRacing = true;
    // Who stands in a line is told when it is its turn.
    const holdBackMs = this.#line === null ? this.#crowd.holdBackMs(() => env.random()) : 0;
    if (holdBackMs < LEAST_HOLD_BACK_MS) this.#wakeHead();
    else this.#holdBack = env.timer(holdBackMs, () => this.#wakeHead());
  }

  #wakeHead(): void {
    this.#holdBack = null;
    this.#isDue = true;
    this.#places[0]?.wake?.();
  }

  /** Whatever was planned is out of date. */
  #settle(): void {
    this.#holdBack?.cancel();
    this.#holdBack = null;
    this.#isDue = false;
    this.#isRacing = false;
    this.#freed = null;
  }
}

/** How long to wait before looking without being woken. */
export function lookAgainMs(env: LinesOptions["env"], looking: Looking): number {
  const { heldForMs, looks, overdueLooks, news } = looking;
  const withNewsMs = heldForMs === null ? FIRST_LOOK_WITH_NEWS_MS : LOOK_WITH_NEWS_MS;
  const slowest = news === "yes" ? withNewsMs : growing(FIRST_LOOK_WITHOUT_NEWS_MS, looks, SLOWEST_LOOK_MS);
  const untilEnd = heldForMs === null ? Number.POSITIVE_INFINITY : Math.max(0, heldForMs);
  // An end that has passed and still stands in the way (who has no clock must observe) is no appointment.
  const spreadMs = growing(SPREAD_AT_EXPIRY_MS, overdueLooks, SLOWEST_LOOK_MS);
  return Math.min(jittered(env, slowest, 0.3), untilEnd + 1 + env.random() * spreadMs);
}

function growing(firstMs: number, times: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(times, 10));
}

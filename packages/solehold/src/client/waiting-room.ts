/**
 * Waiting for a key: first come, first served within this process; woken by the store's news where it
 * has any. News is only a hint to look; a jittered look now and then makes up for news that got lost, and
 * the end of the current lease is looked for when it is due.
 */
import type { LeaseKey } from "../core/index.ts";
import { keyId } from "../core/index.ts";
import { type Env, jittered } from "../env/index.ts";
import type { LeaseManager } from "../manager/index.ts";
import type { StoreEvent, StoreWatch } from "../stores/index.ts";

export interface WaitingRoomOptions {
  readonly env: Env;
  readonly manager: LeaseManager;
}

/** With news the look is insurance; without news it is the only way. */
const LOOK_WITH_NEWS_MS = 2_000;
const FIRST_LOOK_WITHOUT_NEWS_MS = 50;
const SLOWEST_LOOK_MS = 1_000;
/** Everybody sees a lease end at the same instant; only one can have it. */
const SPREAD_AT_EXPIRY_MS = 10;

/** What a waiter knows when it decides how long to wait before the next look. */
export interface Looking {
  readonly heldForMs: number | null;
  readonly looks: number;
  /** How often in a row it looked after the end of the lease, and did not get it. */
  readonly overdueLooks: number;
  readonly news: "yes" | "no";
}

/** One waiter's place. It is the head when it may try. */
export class Place {
  #wake: (() => void) | null = null;
  #woken = false;

  /** Resolves when it is worth looking again: news, a turn of the queue, the time, or the signal. */
  wait(env: Env, forMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#woken || signal?.aborted === true) {
      this.#woken = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        signal?.removeEventListener("abort", done);
        this.#wake = null;
        this.#woken = false;
        resolve();
      };
      const timer = env.timer(forMs, done, { keepAlive: "yes" });
      signal?.addEventListener("abort", done, { once: true });
      this.#wake = done;
    });
  }

  /** Wakes the waiter, or remembers to when it is not waiting at the moment. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }
}

interface Room {
  readonly places: Place[];
  /** Opened for the first who has to wait: most who come are served at once. */
  watch: Promise<StoreWatch | null> | null;
  news: "yes" | "no";
}

export class WaitingRooms {
  readonly #options: WaitingRoomOptions;
  readonly #rooms = new Map<string, Room>();

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  enter(key: LeaseKey): Place {
    const id = keyId(key);
    const room = this.#rooms.get(id) ?? { places: [], watch: null, news: "no" };
    this.#rooms.set(id, room);
    const place = new Place();
    room.places.push(place);
    return place;
  }

  isHead(key: LeaseKey, place: Place): boolean {
    return this.#rooms.get(keyId(key))?.places[0] === place;
  }

  /** Leaving wakes the next in line; a waiter that gave up never blocks those behind it. */
  leave(key: LeaseKey, place: Place): void {
    const id = keyId(key);
    const room = this.#rooms.get(id);
    if (room === undefined) return;
    const index = room.places.indexOf(place);
    if (index >= 0) room.places.splice(index, 1);
    room.places[0]?.wake();
    if (room.places.length > 0) return;
    this.#rooms.delete(id);
    room.watch?.then((watch) => watch?.close()).catch(() => undefined);
  }

  /** Whether every change from now on is announced. */
  news(key: LeaseKey): "yes" | "no" {
    return this.#rooms.get(keyId(key))?.news ?? "no";
  }

  /** Asks for news; resolves once it would come, or never will. A watch that fails makes waiting slower, never wrong. */
  async awaitNews(key: LeaseKey): Promise<void> {
    const id = keyId(key);
    const room = this.#rooms.get(id);
    if (room === undefined) return;
    const scope = { tenant: key.tenant, prefix: key.name };
    room.watch ??= this.#options.manager.watch(scope, (event) => this.#onNews(id, event)).catch(() => null);
    if ((await room.watch) !== null) room.news = "yes";
  }

  /** How long to wait before looking without being woken. */
  lookAgainMs({ heldForMs, looks, overdueLooks, news }: Looking): number {
    const { env } = this.#options;
    const slowest =
      news === "yes" ? LOOK_WITH_NEWS_MS : growing(FIRST_LOOK_WITHOUT_NEWS_MS, looks, SLOWEST_LOOK_MS);
    const untilEnd = heldForMs === null ? Number.POSITIVE_INFINITY : Math.max(0, heldForMs);
    // An end that has passed and still stands in the way (who has no clock must observe) is no appointment.
    const spreadMs = growing(SPREAD_AT_EXPIRY_MS, overdueLooks, SLOWEST_LOOK_MS);
    return Math.min(jittered(env, slowest, 0.3), untilEnd + 1 + env.random() * spreadMs);
  }

  #onNews(id: string, event: StoreEvent): void {
    const concernsUs = event.kind === "reset" || keyId(event.key) === id;
    if (!concernsUs) return;
    const stillHeld = event.kind === "changed" && event.record !== null && event.record.state === "held";
    if (!stillHeld) this.#rooms.get(id)?.places[0]?.wake();
  }
}

function growing(firstMs: number, times: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(times, 10));
}

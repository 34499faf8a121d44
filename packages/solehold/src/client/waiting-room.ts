/**
 * Waiting for a key: first come, first served within this process; woken by the store's news where it
 * has any. News is only a hint to look; a jittered look now and then makes up for news that got lost, and
 * the end of the current lease is looked for when it is due.
 *
 * Every process hears at the same instant that a key is free, and only one can have it. Who tries in vain spreads its
 * next attempt over more time, and who is served over half of it, so that a crowd of any size soon makes a few attempts
 * in vain a handover, and a few waiters make no detour. Who hears in time that the key is taken does not try. Whoever
 * has seen more handovers go by tries sooner. A lone waiter never tries in vain, and so tries at once.
 */
import type { LeaseKey } from "../core/index.ts";
import { keyId } from "../core/index.ts";
import { type Env, jittered, type Timer } from "../env/index.ts";
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
const MOST_SPREAD_MS = 250;
/** Against halving it leaves about two attempts in vain a handover: fewer would hold up crowds of three or four. */
const SPREAD_GROWTH = 1.4;
/** Of how many keys it is remembered how crowded they were. */
const MAX_SPREADS = 1_000;

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
  /** The attempt to come, since the key was said to be free. */
  attempt: Timer | null;
  /** Whether the attempt under way was made because the key was said to be free. */
  racing: "yes" | "no";
  /** How often the key was said to be free since this process had it; half of it is spent by trying in vain. */
  missed: number;
}

export class WaitingRooms {
  readonly #options: WaitingRoomOptions;
  readonly #rooms = new Map<string, Room>();
  /** Over how many milliseconds attempts for a key are spread. */
  readonly #spreads = new Map<string, number>();

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
  }

  enter(key: LeaseKey): Place {
    const id = keyId(key);
    const room = this.#rooms.get(id) ?? {
      places: [],
      watch: null,
      news: "no",
      attempt: null,
      racing: "no",
      missed: 0,
    };
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
    room.attempt?.cancel();
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
    const scope = { tenant: key.tenant, prefix: key.name, wants: "holding" } as const;
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

  /** Whether attempts for it were in vain lately. */
  isCrowded(key: LeaseKey): boolean {
    return (this.#spreads.get(keyId(key)) ?? 0) >= 1;
  }

  /** How an attempt ended. It tells of the crowd if it was made because the key was said to be free. */
  tried(key: LeaseKey, result: "won" | "lost"): void {
    const id = keyId(key);
    const room = this.#rooms.get(id);
    if (room === undefined || room.racing === "no") return;
    const spreadMs = this.#spreads.get(id) ?? 0;
    if (this.#spreads.size >= MAX_SPREADS) this.#spreads.clear();
    const longerMs = Math.min(MOST_SPREAD_MS, (spreadMs + 0.3) * SPREAD_GROWTH);
    this.#spreads.set(id, result === "won" ? spreadMs / 2 : longerMs);
    room.missed = result === "won" ? 0 : room.missed / 2;
    room.racing = "no";
  }

  #onNews(id: string, event: StoreEvent): void {
    const room = this.#rooms.get(id);
    if (room === undefined || (event.kind === "changed" && keyId(event.key) !== id)) return;
    room.attempt?.cancel();
    if (event.kind === "reset") room.places[0]?.wake();
    else if (event.held !== "yes" && event.record?.state !== "held") this.#race(id, room);
  }

  #race(id: string, room: Room): void {
    const { env } = this.#options;
    const spreadMs = (this.#spreads.get(id) ?? 0) - room.missed;
    const putOffMs = spreadMs < 1 ? 0 : env.random() * spreadMs;
    const start = (): void => {
      room.racing = "yes";
      room.places[0]?.wake();
    };
    room.missed += 1;
    if (putOffMs < 1) start();
    else room.attempt = env.timer(putOffMs, start);
  }
}

function growing(firstMs: number, times: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(times, 10));
}

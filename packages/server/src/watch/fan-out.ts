/**
 * Events on their way to those who watch. A few watchers of a tenant get an event at once. More of them get it in portions,
 * some in each turn of the event loop, and tenants take turns: whoever opens thousands of watches, and makes thousands of
 * changes, delays its own events and nobody's commands.
 *
 * Each watcher gets its events in order. Where too many wait, it gets how many it missed in their place.
 */
import type { Env } from "solehold/internal";
import { Pacer } from "../access/pacer.ts";

export interface Watcher<Event> {
  push(event: Event): void;
  /** So many were left out here. */
  missed(count: number): void;
}

/** At once, without turns. */
const FEW = 8;
const IN_ONE_TURN = 64;
/** Of those, before another tenant comes. */
const PORTION = 16;
/** Events of one tenant. */
const MOST_WAITING = 1_000;

/** An event, or how many are missing; and its number, by which newer watchers see that it was before them. */
type Waiting<Event> = { readonly number: number } & (
  | { readonly event: Event }
  | { readonly missing: number }
);

/** The watchers of one tenant, or those of all tenants. */
interface Lane<Event> {
  /** With the number of the last event before they came. */
  readonly watchers: Map<Watcher<Event>, number>;
  readonly waiting: Waiting<Event>[];
  /** Who still has to get the first that waits. */
  rest: Iterator<[Watcher<Event>, number]> | null;
}

export class FanOut<Event> {
  readonly #pacer: Pacer;
  /** By tenant; null: all of them. */
  readonly #lanes = new Map<string | null, Lane<Event>>();
  /** In which something waits. */
  readonly #busy: Lane<Event>[] = [];
  #number = 0;

  constructor(env: Env) {
    this.#pacer = new Pacer(env, () => this.#deliverSome());
  }

  get size(): number {
    return [...this.#lanes.values()].reduce((sum, { watchers }) => sum + watchers.size, 0);
  }

  /** Returns how to stop. `tenant`: null for all. */
  add(tenant: string | null, watcher: Watcher<Event>): () => void {
    const lane = this.#lanes.get(tenant) ?? { watchers: new Map(), waiting: [], rest: null };
    this.#lanes.set(tenant, lane);
    lane.watchers.set(watcher, this.#number);
    return () => {
      lane.watchers.delete(watcher);
      if (lane.watchers.size === 0 && this.#lanes.get(tenant) === lane) this.#lanes.delete(tenant);
    };
  }

  publish(tenant: string, event: Event): void {
    this.#number += 1;
    for (const lane of [this.#lanes.get(tenant), this.#lanes.get(null)])
      if (lane !== undefined) this.#put(lane, { number: this.#number, event });
  }

  /** Something is missing, and nobody knows of which tenant. */
  publishGap(): void {
    this.#number += 1;
    for (const lane of this.#lanes.values()) this.#put(lane, { number: this.#number, missing: 1 });
  }

  #put(lane: Lane<Event>, item: Waiting<Event>): void {
    const { watchers, waiting } = lane;
    if (waiting.length === 0 && watchers.size <= FEW) {
      for (const watcher of watchers.keys()) deliver(watcher, item);
      return;
    }
    if (waiting.length < MOST_WAITING) waiting.push(item);
    else {
      // The first may have reached some of them already.
      const missing = [...waiting.splice(1), item].reduce((sum, each) => sum + countOf(each), 0);
      waiting.push({ number: item.number, missing });
    }
    if (waiting.length > 1) return;
    this.#busy.push(lane);
    this.#pacer.wake();
  }

  #deliverSome(): boolean {
    if (this.#busy.length === 0) return false;
    for (let left = IN_ONE_TURN; left > 0; left -= PORTION) {
      const lane = this.#busy.shift();
      if (lane === undefined) break;
      advance(lane);
      if (lane.waiting.length > 0) this.#busy.push(lane);
    }
    return true;
  }
}

/** The next portion of what waits in the lane. */
function advance<Event>(lane: Lane<Event>): void {
  for (let left = PORTION; left > 0; left -= 1) {
    const [item] = lane.waiting;
    if (item === undefined) return;
    lane.rest ??= lane.watchers.entries();
    const next = lane.rest.next();
    if (next.done === true) {
      lane.waiting.shift();
      lane.rest = null;
      continue;
    }
    const [watcher, since] = next.value;
    if (since < item.number) deliver(watcher, item);
  }
}

function deliver<Event>(watcher: Watcher<Event>, item: Waiting<Event>): void {
  if ("event" in item) watcher.push(item.event);
  else watcher.missed(item.missing);
}

function countOf<Event>(item: Waiting<Event>): number {
  return "event" in item ? 1 : item.missing;
}

/**
 * What this process knows of all the slots of a name that somebody waits for (core/slots.ts): one `KeyStatus` for each
 * slot that was seen. Without slots there is one. How many count is up to the first waiter; a denial says that all of them
 * were taken, and when the first of them ends.
 */
import { askedKey, keyId, type LeaseKey, type LeaseRecord, slotIn, slotKeys } from "../core/index.ts";
import type { CommandOutcome, LeaseView } from "../executor/index.ts";
import { KeyStatus, type Obstacle, type RecordChange } from "./key-status.ts";
import type { ExpectedEnd } from "./look-schedule.ts";

export interface SlotsStatusOptions {
  readonly key: LeaseKey;
  /** How many slots the first waiter may choose from. */
  readonly slots: () => number;
  /** The last grant of this slot through this process. */
  readonly ownFenceOf: (slot: LeaseKey) => bigint;
}

export class SlotsStatus {
  readonly #options: SlotsStatusOptions;
  readonly #first: KeyStatus;
  readonly #others = new Map<number, KeyStatus>();
  /** Of an attempt that found all slots taken: the one that ends first. */
  #denied: KeyStatus | null = null;

  constructor(options: SlotsStatusOptions) {
    this.#options = options;
    this.#first = new KeyStatus(options.ownFenceOf(options.key));
  }

  /** Whether the key is one of the slots. */
  covers(key: LeaseKey): boolean {
    return keyId(askedKey(key)) === keyId(this.#options.key);
  }

  /** Those that the first waiter may have. */
  get keys(): readonly LeaseKey[] {
    const { key, slots } = this.#options;
    return slotKeys(key, slots());
  }

  /** Who stands in the way for the shortest time. */
  get obstacle(): Obstacle | null {
    const obstacles = this.#known().flatMap(({ obstacle }) => (obstacle === null ? [] : [obstacle]));
    const endOf = ({ untilMs }: Obstacle): number => untilMs ?? Number.POSITIVE_INFINITY;
    return obstacles.sort((a, b) => endOf(a) - endOf(b))[0] ?? null;
  }

  /** The holder that a slot is being handed to, while it is. */
  get successor(): string | null {
    return this.#known().find(({ successor }) => successor !== null)?.successor ?? null;
  }

  /** Whether all slots were granted through this queue: then their releases pass here. */
  get isHeldHere(): boolean {
    return this.keys.every(({ name }) => this.#seen(name)?.isHeldHere === true);
  }

  get isKnown(): boolean {
    return this.#known().some(({ isKnown }) => isKnown);
  }

  get looks(): number {
    return Math.max(...this.#known().map(({ looks }) => looks));
  }

  /** When each lease in the way ends, as far as that is known. */
  ends(nowMs: number): readonly ExpectedEnd[] {
    return this.#known().flatMap((status) => status.ends(nowMs));
  }

  heldForMs(nowMs: number): number | null {
    const known = this.#known().flatMap((status) => status.heldForMs(nowMs) ?? []);
    return known.length === 0 ? null : Math.min(...known);
  }

  /** Whether every slot is known to be taken, and none has ended. */
  isBlocked(nowMs: number): boolean {
    if (this.#denied?.isBlocked(nowMs) === true) return true;
    return this.keys.every(({ name }) => this.#seen(name)?.isBlocked(nowMs) === true);
  }

  /** Whether a slot may be free: nothing is known to stand in the way any more. */
  isDue(nowMs: number): boolean {
    return this.isKnown && !this.isBlocked(nowMs);
  }

  onRecord(key: LeaseKey, record: LeaseRecord | null, nowMs: number, ownTicket: string): RecordChange {
    const change = this.#of(key.name).onRecord(record, nowMs, ownTicket);
    if (slotIn(key.name).slot >= this.#options.slots()) return "nothing new";
    if (change === "ended") this.#denied = null;
    return change;
  }

  /** What a look found: a lease that lives in each of the slots. */
  onViews(views: readonly LeaseView[], nowMs: number): void {
    this.#denied = null;
    for (const view of views) this.#of(view.key.name).onView(view, nowMs);
  }

  onOutcome(outcome: CommandOutcome, nowMs: number): void {
    if (outcome.kind === "applied") {
      this.#denied = null;
      this.#of(outcome.decision.lease.key.name).onOutcome(outcome, nowMs);
    } else if (this.#options.slots() === 1) this.#first.onOutcome(outcome, nowMs);
    else if (outcome.kind === "refused") {
      this.#denied ??= new KeyStatus(-1n);
      this.#denied.onOutcome(outcome, nowMs);
    }
  }

  forget(): void {
    this.#denied = null;
    for (const status of this.#known()) status.forget();
  }

  onLooked(nowMs: number): void {
    for (const status of this.#known()) status.onLooked(nowMs);
  }

  isStale(view: LeaseView, nowMs: number): boolean {
    return this.#of(view.key.name).isStale(view, nowMs);
  }

  #of(name: string): KeyStatus {
    const seen = this.#seen(name);
    if (seen !== undefined) return seen;
    const { key, ownFenceOf } = this.#options;
    const status = new KeyStatus(ownFenceOf({ tenant: key.tenant, name }));
    this.#others.set(slotIn(name).slot, status);
    return status;
  }

  #seen(name: string): KeyStatus | undefined {
    const { slot } = slotIn(name);
    return slot === 0 ? this.#first : this.#others.get(slot);
  }

  /** Of the slots that count. */
  #known(): readonly KeyStatus[] {
    const slots = this.#options.slots();
    if (slots === 1) return [this.#first];
    const others = [...this.#others].flatMap(([slot, status]) => (slot < slots ? [status] : []));
    return this.#denied === null ? [this.#first, ...others] : [this.#denied, this.#first, ...others];
  }
}

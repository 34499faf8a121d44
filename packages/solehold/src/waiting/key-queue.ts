/**
 * The wait queue of one key, or of all the slots of a name: the higher priority first, and who came first among equals
 * (precedence.ts). Only the first waiter asks; it asks when the key may be free (a decision that passed here, a watch
 * event, the end of the current lease) and looks now and then in case an event was lost. What may follow what is in
 * queue-state.ts; how waiters come and go, in waiter-list.ts; what is asked and what the answer means, in attempts.ts.
 */
import { type LeaseKey, type LeaseRecord, slotIn } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { CallContext, CommandOutcome, LeaseExecutor, ReleaseRequest } from "../executor/index.ts";
import type { StoreEvent, StoreWatch } from "../store/index.ts";
import { invariant } from "../support/invariant.ts";
import { Attempts, type Step } from "./attempts.ts";
import { KeyTickets } from "./key-tickets.ts";
import { lookAgainMs, RETRY_UNAVAILABLE_MS } from "./look-schedule.ts";
import { assertFollows, IDLE, type QueueState } from "./queue-state.ts";
import { Returning } from "./returning.ts";
import { SlotsStatus } from "./slots-status.ts";
import type { Waiter } from "./waiter.ts";
import { WaiterList } from "./waiter-list.ts";

export interface KeyQueueOptions {
  readonly env: Env;
  readonly next: LeaseExecutor;
  readonly isDraining: () => boolean;
  /** A waiter came, or left. */
  readonly onSize: (change: 1 | -1, queue: KeyQueue) => void;
  /** Nobody waits any more. */
  readonly onEmpty: (queue: KeyQueue) => void;
  /** Something goes on in the background that a clean end waits for. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

export class KeyQueue {
  readonly key: LeaseKey;
  readonly #list: WaiterList;
  readonly status: SlotsStatus;
  readonly #attempts: Attempts;
  readonly #options: KeyQueueOptions;
  #state: QueueState = IDLE;
  #watch: Promise<StoreWatch | null> | null = null;
  #watching: "no" | "opening" | "yes" = "no";
  /** Null until the key is followed, and where the store cannot announce changes. */
  #tickets: KeyTickets | null = null;
  readonly #returning = new Returning();

  /** `ownFenceOf`: of the last grant of a key through this process. */
  constructor(key: LeaseKey, ownFenceOf: (key: LeaseKey) => bigint, options: KeyQueueOptions) {
    const { env, next, inBackground } = options;
    this.key = key;
    const slots = (): number => this.waiters[0]?.request.slots ?? 1;
    this.status = new SlotsStatus({ key, slots, ownFenceOf });
    this.#options = options;
    this.#list = new WaiterList({
      ...{ next, inBackground },
      onSize: (change) => this.#onSize(change),
      onDecided: (outcome) => this.onDecided(outcome),
      lastAttempt: (waiter) => this.afterFirst().then(() => this.#attempts.execute(waiter)),
    });
    this.#attempts = new Attempts({
      ...{ env, next, list: this.#list, status: this.status, isDraining: options.isDraining },
      tickets: () => this.#tickets,
    });
  }

  /** In the order of their turns. */
  get waiters(): readonly Waiter[] {
    return this.#list.all;
  }

  get isIdle(): boolean {
    return this.#state.kind === "idle";
  }

  /** Whether a watch is open, or being opened. */
  get isFollowing(): boolean {
    return this.#watching !== "no";
  }

  /** Whether every change from now on wakes the first waiter. */
  get isWatched(): boolean {
    return this.#watching === "yes";
  }

  join(waiter: Waiter): void {
    this.#returning.onJoin(this.#nowMs());
    this.#list.add(waiter);
    if (this.isWatched && this.#tickets?.knowsOthers === true) this.#tickets.want(true, this.#priority());
    const isNext = this.#attempts.first === waiter;
    if (this.#state.kind === "attempting" || !isNext) {
      this.#list.arm(waiter);
      this.#show();
    } else if (this.#state.kind !== "backing-off" && this.isWatched && this.status.isBlocked(this.#nowMs())) {
      // It is held, and an event or its end will wake the queue: the first attempt would be in vain.
      this.#list.arm(waiter);
      if (waiter.phase !== "left") this.#await();
      this.#show();
    } else this.#advance("ask");
  }

  /**
   * A release of this key by its holder. The first waiter is served with the same write, unless it is another process's
   * turn: then the key is kept for that one.
   */
  release(request: ReleaseRequest, context: CallContext): Promise<CommandOutcome> {
    const { env, next } = this.#options;
    const due = this.#tickets?.dueFor(request.key) ?? null;
    if (due !== null) {
      if (this.waiters.length === 0 && this.#returning.isExpected) this.#tickets?.want(true, 0);
      const released = this.#released(next.execute({ ...request, reserveFor: due }, context));
      this.#tickets?.promise(request.key, due, released);
      return released;
    }
    const waiter = this.#attempts.first;
    const isBusy = this.#state.kind !== "queued" && this.#state.kind !== "backing-off";
    // Fewer slots are wanted than there were: one behind the last stays empty.
    const isBeyond = slotIn(request.key.name).slot >= (waiter?.request.slots ?? 1);
    if (waiter === undefined || isBeyond || isBusy || this.#options.isDraining())
      return this.#released(next.execute(request, context));
    const { released, step } = this.#attempts.handOver(waiter, request, context);
    this.#attempt(step);
    // The waiter is answered first: it has work to do.
    return released.then((outcome) => new Promise((resolve) => env.defer(() => resolve(outcome))));
  }

  /** A command on this key that passed here. */
  onDecided(outcome: CommandOutcome): void {
    // What the same write replaced by the next grant never stood in the store.
    if (outcome.kind === "applied" && outcome.next?.kind !== "applied")
      this.#onRecord(outcome.decision.lease.key, outcome.decision.lease);
  }

  /** An acquire that does not wait lets the first waiter ask before it, if the key may be free. */
  async afterFirst(): Promise<void> {
    if (this.waiters.length > 0 && this.status.isDue(this.#nowMs())) this.#advance("ask");
    if (this.#state.kind === "attempting") await this.#state.done;
  }

  /** Sends away all but the waiter whose attempt is under way, which is answered when it ends. */
  drain(): void {
    for (const waiter of [...this.waiters])
      if (waiter.phase === "waiting") this.#list.end(waiter, "draining");
  }

  /** Only while nobody waits. */
  close(): void {
    if (this.#state.kind === "closed") return;
    this.#transition({ kind: "closed" });
    this.#returning.close();
    this.#tickets?.close();
    this.#watch?.then((watch) => watch?.close()).catch(() => undefined);
  }

  /** The one place where the state changes. */
  #transition(to: QueueState): void {
    const from = this.#state;
    assertFollows(from, to, this.waiters.length);
    if (from.kind === "queued" || from.kind === "backing-off") from.timer.cancel();
    this.#state = to;
    if (to.kind !== "idle") return;
    this.#tickets?.unwant();
    this.#options.onEmpty(this);
  }

  /** The first waiter asks, or looks; once more afterwards if something happened meanwhile. */
  #advance(how: "ask" | "look"): void {
    if (this.#state.kind === "attempting") this.#state.again = true;
    else if (this.waiters.length > 0)
      this.#attempt(how === "ask" ? this.#attempts.ask() : this.#attempts.look());
  }

  #attempt(step: Promise<Step>): void {
    const state: QueueState = {
      kind: "attempting",
      again: false,
      done: step.then((end) => this.#after(end)),
    };
    this.#transition(state);
  }

  #after(end: Step): void {
    invariant(this.#state.kind === "attempting", `an attempt ended while ${this.#state.kind}`);
    const { again } = this.#state;
    // On a key that changes hands all the time there may always be a reason to ask again.
    if (this.waiters.length > 0) this.follow();
    this.#showTicket();
    this.#show();
    if (this.waiters.length === 0) this.#transition(IDLE);
    else if (again || end === "ask again") this.#attempt(this.#attempts.ask());
    else if (end === "wait") this.#await();
    else {
      const { env } = this.#options;
      const timer = env.timer(RETRY_UNAVAILABLE_MS, () => this.#advance("ask"), { keepAlive: true });
      this.#transition({ kind: "backing-off", timer });
    }
  }

  /** Waits for an event, or until it is time to look. */
  #await(): void {
    const { env } = this.#options;
    const { status } = this;
    const nowMs = this.#nowMs();
    const { looks } = status;
    const inMs = lookAgainMs(env, { ends: status.ends(nowMs), looks, watched: this.isWatched });
    const timer = env.timer(inMs, () => this.#advance("look"), { keepAlive: true });
    this.#transition({ kind: "queued", timer, isHeldBack: false });
    this.follow();
    this.#showTicket();
  }

  /** The key is free for anybody: the process that is first in turn tries at once, the others a little later. */
  #race(): void {
    const holdBackMs = this.#state.kind === "queued" ? (this.#tickets?.holdBackMs ?? 0) : 0;
    if (holdBackMs === 0) {
      this.#advance("ask");
      return;
    }
    const timer = this.#options.env.timer(holdBackMs, () => this.#advance("ask"), { keepAlive: true });
    this.#transition({ kind: "queued", timer, isHeldBack: true });
  }

  /** Other processes have to see that this one waits, unless the holder is here and knows. */
  #showTicket(): void {
    if (this.waiters.length > 0 && this.isWatched)
      this.#tickets?.want(!this.status.isHeldHere, this.#priority());
  }

  #priority(): number {
    return this.waiters.reduce((highest, { priority }) => Math.max(highest, priority), 0);
  }

  async #released(answer: Promise<CommandOutcome>): Promise<CommandOutcome> {
    const outcome = await answer;
    this.onDecided(outcome);
    const withdraw = (): void => {
      if (this.waiters.length === 0) this.#tickets?.withdraw();
    };
    const hasTicket = this.#tickets !== null && this.#tickets.own !== "";
    this.#returning.onRelease(this.#options.env, hasTicket ? withdraw : null);
    return outcome;
  }

  #onSize(change: 1 | -1): void {
    this.#options.onSize(change, this);
    if (change === 1 || this.#state.kind === "attempting") return;
    if (this.waiters.length === 0 && this.#state.kind !== "idle") this.#transition(IDLE);
    else this.#show();
  }

  /** Opens the watch, once. Waiting does not depend on it: without it there are more looks. */
  follow(): void {
    if (this.#watch !== null) return;
    const { key } = this;
    const { env, next, inBackground } = this.#options;
    const { tickets } = next;
    this.#watching = "opening";
    this.#watch = next
      .watch({ tenant: key.tenant, prefix: key.name }, (event) => this.#onEvent(event))
      .catch(() => null);
    const onOther = (): void => this.#showTicket();
    if (tickets !== undefined)
      this.#tickets = new KeyTickets({ env, next, tickets, key, onOther, inBackground });
    void Promise.all([this.#watch, this.#tickets?.open()]).then(([watch]) => {
      if (this.#state.kind === "closed") return;
      this.#watching = watch === null ? "no" : "yes";
      // What changed between the last attempt and the first event was announced to nobody.
      if (watch !== null && !this.status.isHeldHere) this.#advance("look");
      else this.#show();
    });
  }

  #onEvent(event: StoreEvent): void {
    if (event.kind === "reset") {
      this.status.forget();
      this.#advance("look");
      return;
    }
    const { key, stored } = event;
    if (!this.status.covers(key)) return;
    if (stored === null) {
      this.#advance("look");
      return;
    }
    if (stored.kind === "found" && stored.record.state !== "held") this.#options.next.onHint?.(key, stored);
    this.#onRecord(key, stored.kind === "found" ? stored.record : null);
  }

  #onRecord(key: LeaseKey, record: LeaseRecord | null): void {
    if (record !== null) this.#tickets?.onRecord(record);
    const own = this.#tickets?.own ?? "";
    const change = this.status.onRecord(key, record, this.#nowMs(), own);
    if (change === "ended" && record?.reservation?.ticket === own && own !== "") this.#advance("ask");
    else if (change === "ended") this.#race();
    else if (this.#state.kind === "queued" && (change === "reserved" || this.#state.isHeldBack))
      this.#await();
  }

  /** Shows those who asked for it where they stand, once it is known. */
  #show(): void {
    if (this.#watching === "opening" || !this.status.isKnown) return;
    const {
      heldBy: holder = null,
      heldSinceMs: sinceMs = null,
      heldUntilMs = null,
    } = this.status.obstacle ?? {};
    for (const [position, waiter] of this.waiters.entries())
      if (waiter.wantsDetails && waiter.isArmed) waiter.show(position, { holder, sinceMs, heldUntilMs });
  }

  #nowMs(): number {
    return this.#options.env.monotonicMs();
  }
}

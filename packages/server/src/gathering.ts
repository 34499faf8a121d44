/**
 * Fuller calls for a store whose calls take long: those that were just answered mostly ask again at once, and what they
 * ask can go with what is waiting already. Without this two halves of the clients take turns for ever on a slow disk, and
 * each half waits for the commit of the other.
 *
 * A call waits while another is under way, and then until as many writes came as were answered, or for a part of what
 * a call takes. Where those who were answered do not come back, nobody waits for the next ones, and for twice as many
 * the next time. Calls of a quick store, and after small ones, do not wait at all: each would only be later.
 *
 * Nothing is decided here, and nothing is lost: every call is made once, and answered by the store.
 */
import type { Env, LeaseStore, Timer } from "solehold";

/** Quicker calls are worth more if one is made while the answers to the other are on their way. */
const SLOW_MS = 1.75;
/** Of what a call takes, for how long the next waits after it. */
const PATIENCE_RATIO = 0.5;
/** After fewer writes nobody waits. */
const LEAST_WRITES = 16;
/**
 * The latest call's part in what calls take: a quick one says that the store is quick, a slow one may have been held up by
 * whatever else this machine does.
 */
const QUICKER_WEIGHT = 0.5;
const SLOWER_WEIGHT = 0.03;
/** Calls whose answers are no further apart were one to the store. */
const TOGETHER_MS = 0.05;
/** Calls after which nobody waits, when those who were answered did not come back. */
const MOST_PASSED = 64;

type Apply = LeaseStore["apply"];

export class Gathering {
  readonly #env: Env;
  readonly #apply: Apply;
  /** As many calls as may wait at the same time: then nothing else can come. */
  readonly #mostCalls: number;
  /** What calls take. */
  #callMs = 0;
  #underWay = 0;
  #answeredAtMs = 0;
  /** Writes that were answered, and for which none has come since. */
  #owed = 0;
  /** How many calls still pass because the last wait was in vain, and how many will the next time. */
  #passing = 0;
  #passNext = 1;
  #waiting: (() => void)[] = [];
  #timer: Timer | null = null;

  constructor(env: Env, apply: Apply, mostCalls: number) {
    this.#env = env;
    this.#apply = apply;
    this.#mostCalls = mostCalls;
  }

  async apply(writes: Parameters<Apply>[0]): ReturnType<Apply> {
    this.#owed = Math.max(0, this.#owed - writes.length);
    if (this.#isSlow() && this.#isMoreToCome()) await this.#gathered();
    const beganAtMs = this.#env.monotonicMs();
    this.#underWay += 1;
    try {
      return await this.#apply(writes);
    } finally {
      this.#underWay -= 1;
      this.#measure(beganAtMs);
      this.#answered(writes.length);
    }
  }

  #isSlow(): boolean {
    return this.#callMs >= SLOW_MS;
  }

  #isMoreToCome(): boolean {
    return this.#underWay > 0 || this.#timer !== null;
  }

  #gathered(): Promise<void> {
    const gathered = new Promise<void>((resolve) => this.#waiting.push(resolve));
    const isAllThere = this.#owed === 0 || this.#waiting.length >= this.#mostCalls;
    if (this.#underWay === 0 && isAllThere) this.#open("in time");
    return gathered;
  }

  /** One that waited in the store for another began when that was done; one that is done with another was a part of it. */
  #measure(beganAtMs: number): void {
    const nowMs = this.#env.monotonicMs();
    const tookMs = nowMs - Math.max(beganAtMs, this.#answeredAtMs);
    this.#answeredAtMs = nowMs;
    if (tookMs < TOGETHER_MS) return;
    const weight = tookMs < this.#callMs ? QUICKER_WEIGHT : SLOWER_WEIGHT;
    this.#callMs += (tookMs - this.#callMs) * weight;
  }

  /** Those who were answered may come back. */
  #answered(writes: number): void {
    this.#owed += writes;
    if (this.#underWay > 0) return;
    if (this.#passing > 0) this.#passing -= 1;
    else if (this.#isSlow() && this.#owed >= LEAST_WRITES) {
      this.#timer?.cancel();
      this.#timer = this.#env.timer(this.#callMs * PATIENCE_RATIO, () =>
        this.#open(this.#waiting.length > 0 ? "in vain" : "at once"),
      );
      return;
    }
    this.#open("at once");
  }

  /** Whoever waits goes on, in the order of arrival. */
  #open(end: "in time" | "in vain" | "at once"): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#owed = 0;
    if (end === "in time") this.#passNext = 1;
    if (end === "in vain") {
      this.#passing = this.#passNext;
      this.#passNext = Math.min(MOST_PASSED, this.#passNext * 2);
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** Only the store on this machine's disk: the others have many writers, and their commits cost them less. */
export function gatheredStore(store: LeaseStore, env: Env): LeaseStore {
  if (store.name !== "embedded") return store;
  const { maxConcurrentCalls } = store.capabilities;
  const gathering = new Gathering(env, (writes) => store.apply(writes), maxConcurrentCalls);
  return { ...store, apply: (writes) => gathering.apply(writes) };
}

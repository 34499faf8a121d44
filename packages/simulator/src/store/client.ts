/**
 * A `LeaseStore` of one process: every call is a message to the engine and a message back. It fails in all
 * the ways in which stores fail, each drawn by name: before acting, after acting, later than it said,
 * without saying, or with "perhaps".
 */
import {
  type ApplyReply,
  askedKey,
  type ConditionalWrite,
  keyId,
  type LeaseKey,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreReply,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
  type WriteResult,
} from "solehold/internal";
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { StoreEngine } from "./engine.ts";
import { EventHints } from "./event-hints.ts";
import { openWatch, type WatchingOptions } from "./watching.ts";

/** How often each fault of the store happens, while it is switched on. */
const RATES = {
  "fail-before": 0.08,
  "lost-reply": 0.08,
  "late-apply": 0.05,
  "conflict-unknown": 0.08,
  "read-fail": 0.1,
  "watch-loss": 0.3,
} as const;

type StoreFault = keyof typeof RATES;

export interface StoreClientOptions {
  readonly world: World;
  readonly network: Network;
  readonly engine: StoreEngine;
  readonly env: SimulatedEnv;
  /** The name of the process, as the engine reports it. */
  readonly process: string;
  readonly config: SimConfig;
  readonly healed: () => boolean;
  readonly sometimes: (situation: Situation) => void;
  /** A write left; it is marked as soon as its sender knows what became of it. */
  readonly onSent: (write: SentWrite) => void;
}

/** A write on its way, as its sender can know it. */
export interface SentWrite {
  readonly process: string;
  /** The key that was asked for, which is another where the write is to one of several slots. */
  readonly askedId: string;
  readonly nonce: string;
  readonly sentMs: number;
  /** Infinity while there is no answer. */
  answeredMs: number;
}

/** A write that was sent and has not been answered. */
interface Unanswered {
  readonly nonce: string;
  readonly expected: string | null;
}

export class SimulatedStore implements LeaseStore {
  readonly name = "simulated";
  readonly capabilities: StoreCapabilities;
  readonly #options: StoreClientOptions;
  readonly #unanswered = new Map<string, Unanswered>();
  readonly #hints: EventHints;
  /** How much of the engine this client has seen: its writes, and how often another server had taken over. */
  /** It talks to one of the store's machines, whose clock is so much ahead. */
  readonly #aheadMs: number;
  #seenSequence = 0;
  #seenTakeovers = 0;
  /** Present exactly when the store's clock can be read without a message. */
  readonly now?: () => number;
  readonly watch?: (scope: WatchScope, listener: WatchListener) => Promise<StoreWatch>;

  constructor(options: StoreClientOptions) {
    const { config, engine } = options;
    this.#options = options;
    this.#hints = new EventHints(options.sometimes);
    this.#seenTakeovers = engine.takeovers.length;
    this.#aheadMs = Math.floor(options.world.choices.stream("front ends").fraction() * config.skewMs);
    this.capabilities = {
      durable: true,
      clock: config.storeClock,
      clockGranularityMs: config.granularityMs,
      clockSkewMs: config.skewMs,
      watch: config.watch,
      conditionalDelete: true,
      maxBatch: 16,
      maxConcurrentCalls: config.maxConcurrentCalls,
    };
    if (config.storeClock === "exact") this.now = () => engine.nowMs();
    const watching: WatchingOptions = {
      ...options,
      onDelivered: (event) => this.#hints.delivered(event),
      isLost: () => this.#fires("watch-loss"),
      call: (label, work) => this.#call(label, work),
    };
    if (config.watch) this.watch = (scope, listener) => openWatch(watching, scope, listener);
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const { engine, config } = this.#options;
    const reply = await this.#call("read", (): ReadReply => {
      this.#checkForLoss();
      if (this.#fires("read-fail")) throw failure("internal", "could not read", "not-applied");
      const records = engine.read(keys);
      for (const stored of records) {
        if (stored.kind !== "found") continue;
        const { key, nonce } = stored.record;
        if (this.#unanswered.get(keyId(key))?.nonce === nonce)
          this.#options.sometimes("an unknown outcome was settled as applied");
      }
      const revision = config.storeClock === "none" ? { revision: BigInt(engine.sequence) } : {};
      return { ...this.#time(), records, ...revision };
    });
    for (const key of keys) this.#hints.forget(key);
    return reply;
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const before = writes.map(({ key }) => this.#unanswered.get(keyId(key)));
    const { world, process, onSent } = this.#options;
    const sent = writes.map(({ key, expected, next }): SentWrite => {
      const nonce = next?.nonce ?? "";
      this.#unanswered.set(keyId(key), { nonce, expected });
      const askedId = keyId(askedKey(key));
      return { process, askedId, nonce, sentMs: world.nowMs, answeredMs: Number.POSITIVE_INFINITY };
    });
    for (const each of sent) onSent(each);
    const reply = await this.#send(writes);
    reply.results.forEach((result, index) => {
      const { kind } = result;
      const write = writes[index];
      if (write === undefined || kind === "unknown") return;
      const last = before[index];
      const known = sent[index];
      if (known !== undefined && kind === "applied") known.answeredMs = world.nowMs;
      if (kind === "applied" && last !== undefined && last.expected === write.expected)
        this.#options.sometimes("an unknown outcome was settled as not applied");
      this.#hints.tried(write, result);
      this.#unanswered.delete(keyId(write.key));
    });
    return reply;
  }

  #send(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    // A request that was doubled on its way is one request: "certainly not done" holds for all its copies.
    let refusal: StoreError | null = null;
    let acted = false;
    return this.#call("write", () => {
      if (!acted) this.#checkForLoss();
      if (!acted && this.#options.engine.full)
        refusal ??= failure("full", "has no space left", "not-applied");
      if (!acted && this.#fires("fail-before"))
        refusal ??= failure("internal", "failed before it acted", "not-applied");
      if (refusal !== null) throw refusal;
      acted = true;
      if (this.#fires("late-apply")) {
        this.#applyLater(writes);
        throw failure("timeout", "is still working on it", "unknown");
      }
      const isLost = this.#fires("lost-reply");
      const results = writes.map((write) => this.#applyOne(write));
      if (isLost) throw failure("unreachable", "closed the connection", "unknown");
      return { ...this.#time(), results };
    });
  }

  /** As real stores notice it: by the counter of writes, compared with that of the server that took over. */
  #checkForLoss(): void {
    const { engine, config } = this.#options;
    const since = engine.takeovers.slice(this.#seenTakeovers);
    const isLost = since.some(({ sequence }) => sequence < this.#seenSequence);
    this.#seenTakeovers = engine.takeovers.length;
    this.#seenSequence = isLost ? engine.sequence : Math.max(this.#seenSequence, engine.sequence);
    if (!isLost || config.identity === "unknown") return;
    this.#options.sometimes("a store's loss of data was noticed");
    throw failure("data-loss", "lost writes that this client saw", "not-applied");
  }

  list(query: ListQuery): Promise<ListPage> {
    const { engine } = this.#options;
    return this.#call("list", () => {
      if (this.#fires("read-fail")) throw failure("internal", "could not list", "not-applied");
      return { ...engine.list(query), ...this.#time() };
    });
  }

  async close(): Promise<void> {}

  /** The HTTP 409 of an object store: another request was under way, and this one was done, or was not. */
  #applyOne(write: ConditionalWrite): WriteResult {
    const { engine, process: by, world } = this.#options;
    if (!this.#fires("conflict-unknown")) return engine.apply(write, by);
    if (world.choices.stream("conflict-unknown").chance(0.5)) engine.apply(write, by);
    return { kind: "unknown", cause: failure("internal", "a conflicting request was under way", "unknown") };
  }

  #applyLater(writes: readonly ConditionalWrite[]): void {
    const { world, engine, config, process: by } = this.#options;
    const inMs = world.choices.stream("late-apply").fraction() * config.ttlMs * 1.5;
    const { life } = engine;
    world.schedule(world.nowMs + inMs, engine.machine, "late apply", () => {
      if (engine.life !== life) return;
      for (const write of writes) {
        const { kind } = engine.apply(write, by);
        if (kind === "conflict") this.#options.sometimes("a late request met a newer version");
      }
    });
  }

  /**
   * A request leg, the work at the store, a reply leg. Lost legs, and a store that stops, leave the caller waiting, or end
   * in an error. A connection ends with the store's life.
   */
  #call<Reply>(label: string, work: () => Reply): Promise<Reply> {
    const { network, engine, env } = this.#options;
    return new Promise((resolve, reject) => {
      const broken = (): void => this.#maybeNotice(reject);
      const reply = (answer: () => void): void => {
        const sent = network.send(engine.machine, env.machine, `${label} reply`, () => {
          if (!env.dead) answer();
        });
        if (sent === "lost") broken();
      };
      const { life } = engine;
      const sent = network.send(env.machine, engine.machine, label, () => {
        if (engine.life !== life || engine.down) {
          broken();
          return;
        }
        try {
          const result = work();
          reply(() => resolve(result));
        } catch (error) {
          reply(() => reject(error as Error));
        }
      });
      if (sent === "lost") broken();
    });
  }

  /** A broken connection is sometimes noticed, and sometimes there is only silence. */
  #maybeNotice(reject: (error: Error) => void): void {
    const { world, env, config } = this.#options;
    const random = world.choices.stream("connection errors");
    if (!random.chance(0.5)) return;
    const atMs = world.nowMs + random.fraction() * config.ttlMs * 0.2;
    world.schedule(atMs, env.machine, "connection error", () => {
      if (!env.dead) reject(failure("unreachable", "the connection broke", "unknown"));
    });
  }

  #time(): StoreReply {
    const { engine, config } = this.#options;
    if (config.storeClock === "none") return { storeTimeMs: null };
    const storeTimeMs = engine.abortedMs(this.#aheadMs);
    const last = engine.takeovers.at(-1);
    if (last === undefined || config.identity === "unknown") return { storeTimeMs };
    return { storeTimeMs, serverChangedAtMs: last.atMs };
  }

  #fires(fault: StoreFault): boolean {
    const { world, config, healed, env } = this.#options;
    if (healed() || !config.faults.has(fault)) return false;
    const fired = world.choices.fires(`${fault} ${env.machine.name}`, RATES[fault]);
    if (fired) world.note("store", fault, () => `for ${env.machine.name}`);
    return fired;
  }
}

function failure(kind: StoreError["kind"], what: string, outcome: "not-applied" | "unknown"): StoreError {
  return new StoreError(kind, `the simulated store ${what}`, { outcome });
}

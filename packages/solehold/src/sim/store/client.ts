/**
 * A `LeaseStore` of one process: every call is a message to the engine and a message back. It fails in all
 * the ways in which stores fail, each drawn by name: before acting, after acting, later than it said,
 * without saying, or with "perhaps".
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StorePlace,
  type StoreWatch,
  type WatchScope,
  type WriteResult,
} from "../../stores/index.ts";
import { ToldTime } from "../../stores/support/told-time.ts";
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { StoreEngine } from "./engine.ts";

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
  readonly keyId: string;
  readonly nonce: string;
  readonly sentMs: number;
  /** Infinity while nobody told. */
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
  readonly #time: ToldTime;
  readonly #isSparing: boolean;
  /** Present exactly when the store's clock can be read without a message. */
  readonly now?: () => number;
  readonly watch?: (scope: WatchScope, listener: (event: StoreEvent) => void) => Promise<StoreWatch>;
  readonly standInLine?: (key: LeaseKey, listener: (event: StoreEvent) => void) => Promise<StorePlace>;

  constructor(options: StoreClientOptions) {
    const { config, engine } = options;
    this.#options = options;
    this.#time = new ToldTime(options.env);
    this.#isSparing =
      config.storeClock === "reply" && options.world.choices.stream("sparing with time").chance(0.5);
    this.capabilities = {
      durable: true,
      clock: config.storeClock,
      clockGranularityMs: config.granularityMs,
      watch: config.watch,
      conditionalDelete: true,
      maxBatch: 16,
      maxConcurrentCalls: config.maxConcurrentCalls,
    };
    if (config.storeClock === "exact") this.now = () => engine.nowMs();
    if (config.watch) this.watch = (scope, listener) => this.#watch(scope, listener);
    if (config.watch && config.lines === "yes")
      this.standInLine = async (key, listener) => this.#placeFor(key, listener);
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const { engine } = this.#options;
    return this.#call("read", () => {
      if (this.#fires("read-fail")) throw failure("internal", "could not read", "not-applied");
      const records = engine.read(keys);
      for (const stored of records) {
        if (stored.kind !== "found") continue;
        const { key, nonce } = stored.record;
        if (this.#unanswered.get(keyId(key))?.nonce === nonce)
          this.#options.sometimes("an unknown outcome was settled as applied");
      }
      return { storeTimeMs: this.#toldMs(), records };
    });
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const before = writes.map(({ key }) => this.#unanswered.get(keyId(key)));
    const { world, process, onSent } = this.#options;
    const sent = writes.map(({ key, expected, next }): SentWrite => {
      const nonce = next?.nonce ?? "";
      this.#unanswered.set(keyId(key), { nonce, expected });
      return { process, keyId: keyId(key), nonce, sentMs: world.nowMs, answeredMs: Number.POSITIVE_INFINITY };
    });
    for (const each of sent) onSent(each);
    const reply = await this.#send(writes);
    reply.results.forEach(({ kind }, index) => {
      const write = writes[index];
      if (write === undefined || kind === "unknown") return;
      const last = before[index];
      const known = sent[index];
      if (known !== undefined && kind === "applied") known.answeredMs = world.nowMs;
      if (kind === "applied" && last !== undefined && last.expected === write.expected)
        this.#options.sometimes("an unknown outcome was settled as not applied");
      this.#unanswered.delete(keyId(write.key));
    });
    return reply;
  }

  #send(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    // A request that was doubled on its way is one request: "certainly not done" holds for all its copies.
    let refusal: StoreError | null = null;
    let acted = false;
    return this.#call("write", () => {
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
      const results = writes.map((write) => this.#applyOne(write));
      if (this.#fires("lost-reply")) throw failure("unreachable", "closed the connection", "unknown");
      const storeTimeMs = this.#leavesOutTime(results) ? null : this.#toldMs();
      return { storeTimeMs, results };
    });
  }

  /** Some stores do not tell their time with writes that were done if they told it just now. */
  #leavesOutTime(results: readonly WriteResult[]): boolean {
    return this.#isSparing && this.#time.isFresh && results.every(({ kind }) => kind === "applied");
  }

  list(query: ListQuery): Promise<ListPage> {
    const { engine } = this.#options;
    return this.#call("list", () => {
      if (this.#fires("read-fail")) throw failure("internal", "could not list", "not-applied");
      return { ...engine.list(query), storeTimeMs: this.#toldMs() };
    });
  }

  async close(): Promise<void> {}

  /** The HTTP 409 of an object store: another request was under way, and this one was done, or was not. */
  #applyOne(write: ConditionalWrite): WriteResult {
    const { engine, process: by } = this.#options;
    const unclear = this.#fires("conflict-unknown");
    const done = !unclear || this.#options.world.choices.stream("conflict-unknown").chance(0.5);
    const result = done ? engine.apply(write, by) : null;
    return unclear || result === null
      ? { kind: "unknown", cause: failure("internal", "a conflicting request was under way", "unknown") }
      : result;
  }

  #applyLater(writes: readonly ConditionalWrite[]): void {
    const { world, engine, config, process: by } = this.#options;
    const inMs = world.choices.stream("late-apply").fraction() * config.ttlMs * 1.5;
    world.schedule(world.nowMs + inMs, engine.machine, "late apply", () => {
      const results = writes.map((write) => engine.apply(write, by));
      if (results.some(({ kind }) => kind === "conflict"))
        this.#options.sometimes("a late request met a newer version");
    });
  }

  #watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    const { engine, network, env } = this.#options;
    return this.#call("watch", () => {
      let open = true;
      const deliver = (event: StoreEvent): void => {
        if (open && !env.dead) listener(event);
      };
      const unsubscribe = engine.subscribe(scope, (event) => {
        if (this.#fires("watch-loss")) return;
        network.send(engine.machine, env.machine, "news", () => deliver(event));
      });
      const close = async (): Promise<void> => {
        open = false;
        unsubscribe();
      };
      return { close };
    });
  }

  /** What is said to the store about the line is not said again when it gets lost. */
  #placeFor(key: LeaseKey, listener: (event: StoreEvent) => void): StorePlace {
    const { engine, network, env } = this.#options;
    let ticket: number | null = null;
    let isIn = false;
    const deliver = (stored: StoredRecord): void => {
      if (env.dead) return;
      // It left just when its turn came.
      if (!isIn) say("gone");
      else listener({ kind: "changed", key, record: null, held: "no", stored: () => stored });
    };
    const member = {
      isListening: () => !env.dead,
      tell: (stored: StoredRecord): void => {
        if (this.#fires("watch-loss")) return;
        this.#options.sometimes("a waiter in a store's line was told of its turn");
        network.send(engine.machine, env.machine, "turn", () => deliver(stored));
      },
    };
    const say = (why: "served" | "gone"): void => {
      network.send(env.machine, engine.machine, "leave line", () => engine.leaveLine(key, member, why));
    };
    const enter = async (): Promise<void> => {
      isIn = true;
      ticket = await this.#call("enter line", () => engine.enterLine(key, member, ticket));
      if (!isIn) say("gone");
    };
    const leave = (why: "served" | "gone"): void => {
      if (isIn) say(why);
      isIn = false;
      ticket = null;
    };
    return { enter, leave, close: async () => leave("gone") };
  }

  /** A request leg, the work at the store, a reply leg. Lost legs leave the caller waiting, or end in an error. */
  #call<Reply>(label: string, work: () => Reply): Promise<Reply> {
    const { network, engine, env } = this.#options;
    return new Promise((resolve, reject) => {
      const reply = (answer: () => void): void => {
        const sent = network.send(engine.machine, env.machine, `${label} reply`, () => {
          if (!env.dead) answer();
        });
        if (sent === "lost") this.#maybeNotice(reject);
      };
      const sent = network.send(env.machine, engine.machine, label, () => {
        try {
          const result = work();
          reply(() => resolve(result));
        } catch (error) {
          reply(() => reject(error as Error));
        }
      });
      if (sent === "lost") this.#maybeNotice(reject);
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

  #toldMs(): number | null {
    const { engine, config, env } = this.#options;
    // Told now, sent before: this much sooner it is told again.
    this.#time.told(env.monotonicMs());
    return config.storeClock === "none" ? null : engine.toldMs();
  }

  #fires(fault: StoreFault): boolean {
    const { world, config, healed, env } = this.#options;
    if (healed() || !config.faults.has(fault)) return false;
    const fired = world.choices.fires(`${fault} ${env.machine.name}`, RATES[fault]);
    if (fired) world.note("store", fault, () => `for ${env.machine.name}`);
    return fired;
  }
}

function failure(
  kind: "internal" | "full" | "timeout" | "unreachable",
  what: string,
  outcome: "not-applied" | "unknown",
): StoreError {
  return new StoreError(kind, `the simulated store ${what}`, { outcome });
}

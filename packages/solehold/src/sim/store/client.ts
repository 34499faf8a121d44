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
  type Notebook,
  type ReadReply,
  type StoreCapabilities,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StorePlace,
  type StoreWatch,
  type WatchScope,
  type WriteResult,
} from "../../store/index.ts";
import { isGivenBack, showsGivenBack } from "../../stores/postgres/writes.ts";
import { ToldTime } from "../../stores/support/told-time.ts";
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { Network } from "../world/network.ts";
import type { World } from "../world/world.ts";
import type { WriteForm } from "./early-writes.ts";
import type { StoreEngine } from "./engine.ts";
import { type ListeningOptions, openWatch, placeFor } from "./listening.ts";
import { openNotebook, SimulatedNote } from "./notebooks.ts";
import { ToldRecords } from "./told-records.ts";

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
  /** "never": what is seen of an end counts although it may not be safe, which is a mistake. */
  readonly doubts: "as shipped" | "never";
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
  readonly #told: ToldRecords;
  /** Present exactly when the store's clock can be read without a message. */
  readonly now?: () => number;
  readonly watch?: (scope: WatchScope, listener: (event: StoreEvent) => void) => Promise<StoreWatch>;
  readonly standInLine?: (key: LeaseKey, listener: (event: StoreEvent) => void) => Promise<StorePlace>;
  readonly notebook?: (name: string) => Promise<Notebook>;

  constructor(options: StoreClientOptions) {
    const { config, engine } = options;
    this.#options = options;
    this.#time = new ToldTime(options.env);
    this.#told = new ToldRecords(options.sometimes);
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
    const listening: ListeningOptions = {
      ...options,
      onLook: (key, stored) => this.#told.lookedAt(key, stored),
      isLost: () => this.#fires("watch-loss"),
      call: (label, work) => this.#call(label, work),
    };
    if (config.watch) this.watch = (scope, listener) => openWatch(listening, scope, listener);
    if (config.watch && config.lines === "yes")
      this.standInLine = async (key, listener) => placeFor(listening, key, listener);
    if (config.notes === "yes") this.notebook = (name) => openNotebook(listening, name);
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const { engine } = this.#options;
    const reading = this.#exchange<ReadReply>("read", (answer, broken) => {
      if (this.#fires("read-fail")) throw failure("internal", "could not read", "not-applied");
      const records = engine.read(keys);
      for (const stored of records) {
        if (stored.kind !== "found") continue;
        const { key, nonce } = stored.record;
        if (this.#unanswered.get(keyId(key))?.nonce === nonce)
          this.#options.sometimes("an unknown outcome was settled as applied");
      }
      const reply = { storeTimeMs: this.#toldMs(), records };
      this.#whenCertain(records, () => answer(reply), broken);
    });
    return reading.then((reply) => {
      for (const key of keys) this.#told.forget(key);
      return reply;
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
    for (const { aside } of writes) if (aside instanceof SimulatedNote) aside.send();
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
      this.#told.tried(write, result);
      this.#unanswered.delete(keyId(write.key));
    });
    return reply;
  }

  /** As the real store that does so: what is given back, by itself. */
  #formOf(writes: readonly ConditionalWrite[]): WriteForm {
    return this.#options.config.ends === "early" && writes.length === 1 && writes.every(isGivenBack)
      ? "early"
      : "usual";
  }

  #send(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    // A request that was doubled on its way is one request: "certainly not done" holds for all its copies.
    let refusal: StoreError | null = null;
    let acted = false;
    return this.#exchange("write", (answer, broken) => {
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
      this.#applyAll(writes, broken, (results) => {
        if (isLost) return;
        const storeTimeMs = this.#leavesOutTime(results) ? null : this.#toldMs();
        const shown = results.flatMap((result) => (result.kind === "conflict" ? [result.current] : []));
        this.#whenCertain(shown, () => answer({ storeTimeMs, results }), broken);
      });
      if (isLost) throw failure("unreachable", "closed the connection", "unknown");
    });
  }

  /** Calls back, once, when all have been answered; or when none will be. */
  #applyAll(
    writes: readonly ConditionalWrite[],
    broken: () => void,
    done: (results: readonly WriteResult[]) => void,
  ): void {
    const form = this.#formOf(writes);
    const results: WriteResult[] = [];
    let open = writes.length;
    writes.forEach((write, index) => {
      this.#applyOne(write, form, broken, (result) => {
        results[index] = result;
        open -= 1;
        if (open === 0) done(results);
      });
    });
  }

  /** As the real store that does so: what shows a lease that was given back is answered when that is safe. */
  #whenCertain(shown: readonly StoredRecord[], certain: () => void, broken: () => void): void {
    const { config, doubts, engine, sometimes } = this.#options;
    const isDoubted = config.ends === "early" && doubts === "as shipped" && shown.some(showsGivenBack);
    if (!isDoubted) certain();
    else {
      sometimes("a look at an end waited until it was safe");
      engine.whenSafe({ safe: certain, lost: broken });
    }
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
  #applyOne(
    write: ConditionalWrite,
    form: WriteForm,
    broken: () => void,
    done: (result: WriteResult) => void,
  ): void {
    const { engine, process: by } = this.#options;
    const unclear = this.#fires("conflict-unknown");
    const acts = !unclear || this.#options.world.choices.stream("conflict-unknown").chance(0.5);
    const answered = unclear ? () => undefined : done;
    if (acts) engine.submit(write, by, form, { answered, broken: unclear ? () => undefined : broken });
    if (unclear)
      done({
        kind: "unknown",
        cause: failure("internal", "a conflicting request was under way", "unknown"),
      });
  }

  #applyLater(writes: readonly ConditionalWrite[]): void {
    const { world, engine, config, process: by } = this.#options;
    const inMs = world.choices.stream("late-apply").fraction() * config.ttlMs * 1.5;
    const { life } = engine;
    const form = this.#formOf(writes);
    const answered = ({ kind }: WriteResult): void => {
      if (kind === "conflict") this.#options.sometimes("a late request met a newer version");
    };
    world.schedule(world.nowMs + inMs, engine.machine, "late apply", () => {
      if (engine.life !== life) return;
      for (const write of writes) engine.submit(write, by, form, { answered, broken: () => undefined });
    });
  }

  #call<Reply>(label: string, work: () => Reply): Promise<Reply> {
    return this.#exchange(label, (answer) => answer(work()));
  }

  /**
   * A request leg, the work at the store, a reply leg. Lost legs, and a store that stops, leave the caller waiting, or end
   * in an error. A connection ends with the store's life.
   */
  #exchange<Reply>(
    label: string,
    work: (answer: (reply: Reply) => void, broken: () => void) => void,
  ): Promise<Reply> {
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
          work((result) => reply(() => resolve(result)), broken);
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

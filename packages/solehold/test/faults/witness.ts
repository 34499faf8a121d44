/** What the fault tests watch with: an env that knows which timer runs, and rejections that nobody handled. */
import { type Env, realEnv, type Timer, type TimerOptions } from "../../src/env/index.ts";
import type { ApplyReply, ConditionalWrite, LeaseStore } from "../../src/store/index.ts";

/**
 * The real world, which can say for when the code that runs now was planned. A machine under load runs
 * timers late; what a lease promises is that it planned its end in time.
 */
export class WitnessEnv implements Env {
  /** Those that have not ended, also one that runs. */
  readonly #timers = new Set<{ readonly dueMs: number }>();

  /** When the first of the timers was due that run now, or are late; the present when there is none. */
  get plannedForMs(): number {
    return Math.min(this.monotonicMs(), ...[...this.#timers].map(({ dueMs }) => dueMs));
  }

  timer(delayMs: number, callback: () => void, options?: TimerOptions): Timer {
    const planned = { dueMs: this.monotonicMs() + delayMs };
    this.#timers.add(planned);
    const run = (): void => {
      // One that runs may be cancelled, and runs on.
      const running = { ...planned };
      this.#timers.add(running);
      this.#timers.delete(planned);
      try {
        callback();
      } finally {
        this.#timers.delete(running);
      }
    };
    const timer = realEnv.timer(delayMs, run, options);
    return {
      cancel: () => {
        this.#timers.delete(planned);
        timer.cancel();
      },
    };
  }

  monotonicMs(): number {
    return realEnv.monotonicMs();
  }

  wallMs(): number {
    return realEnv.wallMs();
  }

  defer(callback: () => void): void {
    realEnv.defer(callback);
  }

  randomBytes(length: number): Uint8Array {
    return realEnv.randomBytes(length);
  }

  random(): number {
    return realEnv.random();
  }
}

/** Everything that escaped while it was listening. */
export class Escapes {
  readonly seen: unknown[] = [];
  readonly #note = (error: unknown): void => void this.seen.push(error);

  listen(): void {
    process.on("unhandledRejection", this.#note);
    process.on("uncaughtException", this.#note);
  }

  stop(): void {
    process.off("unhandledRejection", this.#note);
    process.off("uncaughtException", this.#note);
  }
}

/** The store with some of its methods replaced. Whatever else it is stays in its own hands. */
export function overriding(store: LeaseStore, methods: Partial<LeaseStore>): LeaseStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (Object.hasOwn(methods, name)) return Reflect.get(methods, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The store, with something that happens just before its next write. */
export class WriteTrap {
  readonly store: LeaseStore;
  #next: (() => void) | null = null;

  constructor(store: LeaseStore) {
    const apply = async (writes: readonly ConditionalWrite[]): Promise<ApplyReply> => {
      this.#next?.();
      this.#next = null;
      return await store.apply(writes);
    };
    this.store = overriding(store, { apply });
  }

  beforeNextWrite(action: () => void): void {
    this.#next = action;
  }
}

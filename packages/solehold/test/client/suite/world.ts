// Where the suite runs: any way to reach leases, on one manual clock that clients and server share. Calls may
// take real time (a socket, a disk), so time moves in small steps and waits after each until no call is under
// way: what a test sees does not depend on how fast the machine is.
import { expect, onTestFinished } from "vitest";
import { Leases } from "../../../src/client/leases.ts";
import type { ManualEnv } from "../../../src/env/index.ts";
import type { LeaseExecutor } from "../../../src/executor/index.ts";

export interface WorldOptions {
  readonly env: ManualEnv;
  /** A executor of its own, as another process would have. */
  readonly openExecutor: () => Promise<LeaseExecutor>;
  /** Calls that are rightly without an answer: they wait in a server's line. */
  readonly inLine?: () => number;
  /** A call that is under way for longer, in real time, waits for the clock and not for the machine. */
  readonly longestCallMs?: () => number;
}

export type OpenWorld = () => Promise<World>;

const STEP_MS = 50;
/** How many turns of the event loop without a call under way count as calm: notifications travel without a call. */
const CALM_TURNS = 12;

export class World {
  readonly env: ManualEnv;
  readonly #options: WorldOptions;
  #underWay = 0;

  constructor(options: WorldOptions) {
    this.env = options.env;
    this.#options = options;
  }

  async client(holder: string): Promise<Leases> {
    const executor = this.#counted(await this.#options.openExecutor());
    const leases = new Leases({ executor, env: this.env, holder });
    onTestFinished(async () => await this.settled(leases.close()));
    return leases;
  }

  async clients<const Holders extends readonly string[]>(
    ...holders: Holders
  ): Promise<{ [Index in keyof Holders]: Leases }> {
    const opened: Leases[] = [];
    for (const holder of holders) opened.push(await this.client(holder));
    return opened as unknown as { [Index in keyof Holders]: Leases };
  }

  async advance(durationMs: number): Promise<void> {
    await this.#calm();
    for (let leftMs = durationMs; leftMs > 0; leftMs -= STEP_MS) {
      await this.env.advance(Math.min(STEP_MS, leftMs));
      await this.#calm();
    }
  }

  /** Lets time run until it is so. */
  async until(condition: () => boolean, limitMs = 60_000): Promise<void> {
    for (let elapsed = 0; !condition(); elapsed += STEP_MS) {
      if (elapsed >= limitMs) throw new Error(`did not come about within ${limitMs} ms`);
      await this.advance(STEP_MS);
    }
  }

  /** Lets time run until the promise has settled. */
  async settled<Value>(promise: Promise<Value>, limitMs = 60_000): Promise<Value> {
    let done = false;
    const watched = promise.finally(() => {
      done = true;
    });
    watched.catch(() => undefined);
    await this.until(() => done, limitMs);
    return await watched;
  }

  async #calm(): Promise<void> {
    const { inLine = () => 0, longestCallMs = () => 1_000 } = this.#options;
    const until = Date.now() + longestCallMs();
    for (let calm = 0; calm < CALM_TURNS && Date.now() < until; ) {
      await new Promise((resolve) => setImmediate(resolve));
      calm = this.#underWay > inLine() ? 0 : calm + 1;
    }
  }

  #counted(executor: LeaseExecutor): LeaseExecutor {
    const call = (run: () => unknown): unknown => {
      const result = run();
      if (!(result instanceof Promise)) return result;
      this.#underWay += 1;
      return result.finally(() => {
        this.#underWay -= 1;
      });
    };
    return new Proxy(executor, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => call(() => Reflect.apply(value, target, given));
      },
    });
  }
}

/** Each larger than the one before. */
export function expectGrowing(fences: readonly bigint[]): void {
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)));
}

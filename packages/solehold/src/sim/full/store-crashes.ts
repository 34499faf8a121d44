/**
 * Crashes of a store that keeps what is safe. They happen while something that was written is not safe yet, because at
 * any other time they take nothing away but connections; more often after an end, which others can see by then.
 */
import type { SimConfig } from "../config.ts";
import type { WriteForm } from "../store/early-writes.ts";
import type { StoreEngine } from "../store/engine.ts";
import type { World } from "../world/world.ts";

const RATES = { early: 0.4, usual: 0.03 } as const satisfies Record<WriteForm, number>;
const LONGEST_TTLS = 0.5;

export class StoreCrashes {
  readonly #world: World;
  readonly #config: SimConfig;
  readonly #engine: () => StoreEngine;
  readonly #healed: () => boolean;

  constructor(options: {
    readonly world: World;
    readonly config: SimConfig;
    readonly engine: () => StoreEngine;
    readonly healed: () => boolean;
  }) {
    this.#world = options.world;
    this.#config = options.config;
    this.#engine = options.engine;
    this.#healed = options.healed;
  }

  /** Something was written, and will be safe then. */
  onLogged(form: WriteForm, safeAtMs: number): void {
    const { choices, nowMs } = this.#world;
    if (this.#healed() || !this.#config.faults.has("store-crash")) return;
    const random = choices.stream("store crashes");
    // Rather late than early: then others have seen it.
    const when = Math.max(random.fraction(), random.fraction());
    const howLong = random.fraction();
    if (!choices.fires(`store-crash ${form}`, RATES[form])) return;
    const downMs = howLong * LONGEST_TTLS * this.#config.ttlMs;
    this.#world.schedule(nowMs + when * (safeAtMs - nowMs), null, "store crash", () => this.#crash(downMs));
  }

  #crash(downMs: number): void {
    const engine = this.#engine();
    if (this.#healed() || engine.down) return;
    this.#world.note("store", "crashes", () => `for ${Math.round(downMs)} ms`);
    engine.down = true;
    engine.crash();
    this.#world.schedule(this.#world.nowMs + downMs, null, "store starts", () => {
      engine.down = false;
      this.#world.note("store", "starts");
    });
  }
}

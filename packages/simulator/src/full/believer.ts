/** A lease handle of a process, as the oracles ask it what it believes. */
import { keyId, type LeaseKey } from "solehold/internal";
import type { Holding } from "../mutations.ts";
import type { Believer } from "../oracles/oracle.ts";
import type { World } from "../world/world.ts";
import type { Process } from "./process.ts";
import type { BeliefLimit } from "./recorder.ts";

/** A holder looks for a suspend or a step of the wall clock once a second. */
const NOTICES_SUSPEND_MS = 1_100;
/** Smaller moves of the wall clock than half of this go unnoticed. */
const UNNOTICED_MS = 10;
/** Timers are a little late at times. */
const TIMER_SLACK_MS = 2;

export class LeaseBeliever implements Believer {
  readonly who: string;
  readonly key: LeaseKey;
  readonly fence: bigint;
  readonly #world: World;
  readonly #process: Process;
  readonly #holding: Holding;
  readonly #limits: ReadonlyMap<string, BeliefLimit>;
  readonly #limitId: string;

  constructor(world: World, process: Process, holding: Holding, limits: ReadonlyMap<string, BeliefLimit>) {
    this.#world = world;
    this.#process = process;
    this.#holding = holding;
    this.#limits = limits;
    this.who = process.name;
    this.key = holding.lease.key;
    this.fence = holding.lease.fence;
    this.#limitId = `${process.name} ${keyId(this.key)}@${this.fence}`;
  }

  ended(): boolean {
    return this.#holding.lease.signal.aborted || !this.#process.alive;
  }

  believes(): boolean {
    return this.#holding.isHeld();
  }

  frozen(): boolean {
    return this.#process.machine.frozen;
  }

  overdue(): boolean {
    const { machine } = this.#process;
    const limit = this.#limits.get(this.#limitId);
    // In the burst after a pause everything happens at once, in any order, and timers are set anew.
    const justThawed = this.#world.nowMs - machine.thawedAtMs < TIMER_SLACK_MS;
    if (limit === undefined || machine.frozen || justThawed) return false;
    if (machine.clock.monotonicMs() > limit.monotonicMs + TIMER_SLACK_MS) return true;
    const calmSinceMs = Math.max(machine.thawedAtMs, machine.wallSteppedAtMs);
    const calm = (this.#world.nowMs - calmSinceMs) * machine.clock.rate > NOTICES_SUSPEND_MS;
    return calm && machine.clock.wallMs() > limit.wallMs + UNNOTICED_MS;
  }
}

/**
 * A machine: its clocks, and whether it runs. While it is frozen (paused or suspended) nothing happens on
 * it; what fell due is kept and happens in a burst, in an order that the seed draws, when it thaws.
 */
import { type ClockStart, SimulatedClock } from "./clock.ts";
import type { EventOwner, QueuedEvent } from "./queue.ts";
import type { World } from "./world.ts";

export class Machine implements EventOwner {
  readonly name: string;
  readonly clock: SimulatedClock;
  readonly #world: World;
  readonly #onRate: (() => void)[] = [];
  #frozen = false;
  #held: QueuedEvent[] = [];
  /** The world's time of the last thaw, and of the last end of a suspend. */
  thawedAtMs = Number.NEGATIVE_INFINITY;
  suspendedUntilMs = Number.NEGATIVE_INFINITY;
  wallSteppedAtMs = Number.NEGATIVE_INFINITY;

  constructor(world: World, name: string, start: ClockStart) {
    this.#world = world;
    this.name = name;
    this.clock = new SimulatedClock(() => world.nowMs, start);
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  hold(event: QueuedEvent): void {
    this.#held.push(event);
  }

  /** The process is stopped or busy: its clocks run on. */
  pause(forMs: number): void {
    if (this.#frozen) return;
    this.#freeze("pause", forMs, () => undefined);
  }

  /** The machine sleeps: its monotonic clock stands. */
  suspend(forMs: number): void {
    if (this.#frozen) return;
    this.clock.suspend();
    this.#freeze("suspend", forMs, () => {
      this.clock.resume();
      this.suspendedUntilMs = this.#world.nowMs;
    });
  }

  /** Its clocks run at another rate from now on. */
  setRate(rate: number): void {
    this.clock.setRate(rate);
    for (const listener of this.#onRate) listener();
  }

  /** Calls back when the rate has changed: timers are due at another time then. */
  onRate(listener: () => void): void {
    this.#onRate.push(listener);
  }

  stepWall(byMs: number): void {
    this.#world.note(this.name, "wall step", () => `${Math.round(byMs)} ms`);
    this.wallSteppedAtMs = this.#world.nowMs;
    this.clock.stepWall(byMs);
  }

  #freeze(how: string, forMs: number, onThaw: () => void): void {
    this.#world.note(this.name, how, () => `for ${Math.round(forMs)} ms`, forMs);
    this.#frozen = true;
    this.#world.schedule(this.#world.nowMs + forMs, null, `end of ${how}`, () => {
      this.#frozen = false;
      onThaw();
      this.thawedAtMs = this.#world.nowMs;
      this.#world.note(this.name, `end of ${how}`);
      const held = this.#held;
      this.#held = [];
      for (const event of held) if (!event.cancelled) this.#world.release(event);
    });
  }
}

/**
 * A machine's two clocks as functions of the world's time: their own offset, a rate near 1, steps of the
 * wall clock, and suspends, in which the monotonic clock stands and the wall clock moves on.
 */

export interface ClockStart {
  readonly monotonicMs: number;
  readonly wallMs: number;
  /** How many own milliseconds pass in one of the world's. */
  readonly rate: number;
}

export class SimulatedClock {
  readonly #worldMs: () => number;
  #rate: number;
  #anchorMs: number;
  #monotonicMs: number;
  #wallMs: number;
  #suspended = false;

  constructor(worldMs: () => number, start: ClockStart) {
    this.#worldMs = worldMs;
    this.#rate = start.rate;
    this.#anchorMs = worldMs();
    this.#monotonicMs = start.monotonicMs;
    this.#wallMs = start.wallMs;
  }

  get rate(): number {
    return this.#rate;
  }

  monotonicMs(): number {
    return this.#suspended ? this.#monotonicMs : this.#monotonicMs + this.#elapsedMs();
  }

  /** Whole milliseconds, as machines tell it. */
  wallMs(): number {
    return Math.floor(this.#wallMs + this.#elapsedMs());
  }

  /** The monotonic clock stands until `resume`. */
  suspend(): void {
    this.#anchor();
    this.#suspended = true;
  }

  resume(): void {
    this.#anchor();
    this.#suspended = false;
  }

  stepWall(byMs: number): void {
    this.#wallMs += byMs;
  }

  setRate(rate: number): void {
    this.#anchor();
    this.#rate = rate;
  }

  #elapsedMs(): number {
    return (this.#worldMs() - this.#anchorMs) * this.#rate;
  }

  #anchor(): void {
    const elapsedMs = this.#elapsedMs();
    if (!this.#suspended) this.#monotonicMs += elapsedMs;
    this.#wallMs += elapsedMs;
    this.#anchorMs = this.#worldMs();
  }
}

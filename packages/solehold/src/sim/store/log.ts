/**
 * The store's log, on its one disk: a line is safe when the disk has it, and never before all lines that stand before
 * it. A crash loses what is not safe, from the end.
 */
import type { Machine } from "../world/machine.ts";
import type { RandomStream } from "../world/random.ts";
import type { World } from "../world/world.ts";

/** Exactly one of both is called, once; "lost" by a crash. */
export interface LineFate {
  readonly safe: () => void;
  readonly lost: () => void;
}

/** Now and then a disk has other things to do. */
export interface DiskStalls {
  readonly rate: number;
  readonly longestMs: number;
  /** From then on it works as it should. */
  readonly isOver: () => boolean;
}

interface Line extends LineFate {
  readonly safeAtMs: number;
}

export class WriteLog {
  readonly #world: World;
  readonly #machine: Machine;
  readonly #random: RandomStream;
  readonly #diskMs: number;
  readonly #stalls: DiskStalls;
  /** In their order. */
  #unsafe: Line[] = [];

  constructor(options: {
    readonly world: World;
    readonly machine: Machine;
    /** How long the disk takes for a line, on average. */
    readonly diskMs: number;
    readonly stalls: DiskStalls;
  }) {
    this.#world = options.world;
    this.#machine = options.machine;
    this.#random = options.world.choices.stream("disk");
    this.#diskMs = options.diskMs;
    this.#stalls = options.stalls;
  }

  /** Returns when it will be safe, if the store does not stop before. */
  append(fate: LineFate): number {
    const { nowMs } = this.#world;
    const usualMs = Math.min(this.#random.exponential(this.#diskMs), this.#diskMs * 8);
    const safeAtMs = Math.max(nowMs + usualMs + this.#stallMs(), this.#unsafe.at(-1)?.safeAtMs ?? 0);
    const line: Line = { ...fate, safeAtMs };
    this.#unsafe.push(line);
    this.#world.schedule(safeAtMs, this.#machine, "log safe", () => this.#flush(line));
    return safeAtMs;
  }

  /** The newest first: each finds the store as it was when its line was written. */
  crash(): void {
    const lost = this.#unsafe;
    this.#unsafe = [];
    for (const line of lost.reverse()) line.lost();
  }

  #stallMs(): number {
    const { rate, longestMs, isOver } = this.#stalls;
    const forMs = this.#random.fraction() * longestMs;
    if (isOver() || !this.#world.choices.fires("disk stall", rate)) return 0;
    this.#world.note(this.#machine.name, "disk stalls", () => `for ${Math.round(forMs)} ms`);
    return forMs;
  }

  /** What stands before it is safe with it. */
  #flush(line: Line): void {
    const index = this.#unsafe.indexOf(line);
    if (index < 0) return;
    for (const each of this.#unsafe.splice(0, index + 1)) each.safe();
  }
}

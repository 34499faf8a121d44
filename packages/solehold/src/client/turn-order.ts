/**
 * In which order a crowd of processes takes turns at a key that each of them hears of at the same instant.
 *
 * The problem. "The key is free" reaches all who wait, and only one can have it. If all try, a crowd of N makes N
 * attempts for one handover; if each waits a random time first, the key lies idle, and whoever had luck once (and so
 * believes the crowd to be small) has it again and again.
 *
 * The rule. News says by an opaque mark who gave the key back. So everybody knows how many others had it lately, and
 * everybody counts the same handovers. After a turn a process lets as many handovers go by as there are others, and tries
 * at once at the next one. All count alike, and no two had their last turn at the same handover: so at every handover one
 * process is due, and they come round by themselves, each in its turn, without a word between them.
 *
 * When it does not work out: whoever is due may be away or dead. So nobody waits for its turn alone. Who is still N turns
 * away tries after N steps, unless it hears before that the key is taken; a step is as long as an attempt takes here, so
 * that the one before has been heard of. Two may be due at once: newcomers have had no turn, and try at the next handover.
 * Who tries in vain lets a random number of handovers go by, from twice as many with each loss.
 *
 * Others who have not had the key for twice as many handovers as there are others have left, and do not count: as many
 * as had it lately are found by counting from the latest. Someone who is alone is always due, and never waits.
 *
 * Turns are those of processes. Within one the line decides who has it, so that of two processes neither starves,
 * however many wait in the other.
 */

/** Handovers beyond twice the crowd within which its members are expected to come round. */
const GRACE_HANDOVERS = 4;
const MAX_OTHERS = 256;
/** Over how many handovers losers spread at most where less is known of the crowd. */
const WIDEST_GUESS = 16;
const FIRST_STEP_MS = 1;
const LONGEST_STEP_MS = 100;
const LONGEST_HOLD_BACK_MS = 250;
/** How much the last attempt says about how long one takes. */
const STEP_WEIGHT = 0.2;

export class Crowd {
  #handovers = 0;
  /** By their marks, at which handover each of the others gave the key back last; the latest at the end. */
  readonly #others = new Map<string, number>();
  /** The handover at which this process is due. */
  #turn = 0;
  #lossesInARow = 0;
  #stepMs = FIRST_STEP_MS;
  #isHolding = false;

  /** How many others had it lately. */
  get others(): number {
    let count = 0;
    for (const handover of [...this.#others.values()].reverse()) {
      if (this.#handovers - handover > (count + 1) * 2 + GRACE_HANDOVERS) break;
      count += 1;
    }
    return count;
  }

  /** The key was given back; null when it is not known by whom. */
  freed(by: string | null): void {
    this.#handovers += 1;
    const wasHolding = this.#isHolding;
    this.#isHolding = false;
    if (by === null) return;
    this.#others.delete(by);
    if (!wasHolding) this.#others.set(by, this.#handovers);
    if (this.#others.size > MAX_OTHERS) this.#others.delete(this.#others.keys().next().value ?? "");
  }

  /** How long to wait, now that it is free, before it may be tried for. */
  holdBackMs(random: () => number): number {
    const turnsAway = this.#turn - this.#handovers;
    return turnsAway <= 0 ? 0 : Math.min(LONGEST_HOLD_BACK_MS, (turnsAway + random()) * this.#stepMs);
  }

  /** An attempt took so long, however it ended. */
  took(durationMs: number): void {
    const stepMs = this.#stepMs + (durationMs - this.#stepMs) * STEP_WEIGHT;
    this.#stepMs = Math.min(LONGEST_STEP_MS, Math.max(FIRST_STEP_MS, stepMs));
  }

  won(): void {
    this.#isHolding = true;
    this.#lossesInARow = 0;
    this.#turn = this.#handovers + this.others + 1;
  }

  /** Somebody else was faster. */
  lost(random: () => number): void {
    this.#lossesInARow += 1;
    const widest = Math.max(WIDEST_GUESS, this.others);
    const window = Math.min(2 ** Math.min(this.#lossesInARow, 10), widest);
    this.#turn = this.#handovers + 1 + Math.floor(random() * window);
  }
}

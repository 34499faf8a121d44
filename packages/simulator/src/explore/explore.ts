/**
 * Breadth-first search through every state of a small world: all interleavings, all delays, all losses, all
 * clocks within the bound, for as long as the world may go on. What holds here holds in every run of that
 * size; what does not comes with the shortest trace that shows it.
 */
import { Brain } from "./brain.ts";
import { Catalogue } from "./catalogue.ts";
import { Ageing, reduced, type Setting } from "./reduce.ts";
import { type ExploreRules, type ExploreWorld, SHIPPED_RULES } from "./rules.ts";
import { type ExploreState, startState } from "./state.ts";
import { steps } from "./steps.ts";

export interface ExploreResult {
  readonly states: number;
  /** The longest shortest way to a state; with a violation, the length of its trace. */
  readonly depth: number;
  readonly violation: { readonly oracle: string; readonly trace: readonly string[] } | null;
}

export interface ExploreOptions {
  readonly rules?: Partial<ExploreRules>;
  /** Called after each level of the search. */
  readonly onLevel?: (progress: { readonly states: number; readonly depth: number }) => void;
}

export function explore(world: ExploreWorld, options: ExploreOptions = {}): ExploreResult {
  const rules: ExploreRules = { ...SHIPPED_RULES, ...options.rules };
  const catalogue = new Catalogue(world.clients, world.keys);
  const setting: Setting = { world, rules, brain: new Brain(world, rules), catalogue };
  return new Search(setting, options).run();
}

class Search {
  readonly #setting: Setting;
  readonly #options: ExploreOptions;
  readonly #ageing: Ageing;
  readonly #start: ExploreState;
  /** Every state seen, with its number. */
  readonly #seen = new Map<string, number>();
  /** For each number, that of the state before it. */
  readonly #parents: number[] = [-1];

  constructor(setting: Setting, options: ExploreOptions) {
    this.#setting = setting;
    this.#options = options;
    this.#ageing = new Ageing(setting);
    const { keys, clients } = startState(setting.world.clients, setting.world.keys);
    this.#start = reduced({ keys: [...keys], clients: [...clients] }, setting);
  }

  run(): ExploreResult {
    const { catalogue } = this.#setting;
    this.#seen.set(catalogue.textOf(this.#start), 0);
    let level: ExploreState[] = [this.#start];
    let first = 0;
    for (let depth = 0; ; depth += 1) {
      const next: ExploreState[] = [];
      for (let position = 0; position < level.length; position += 1) {
        const state = level[position];
        if (state === undefined) continue;
        const broken = this.#expand(state, first + position, next);
        if (broken === null) continue;
        const trace = this.#traceTo(first + position, broken);
        return { states: this.#seen.size, depth: trace.length, violation: { oracle: broken, trace } };
      }
      first += level.length;
      if (next.length === 0) return { states: this.#seen.size, depth, violation: null };
      level = next;
      this.#options.onLevel?.({ states: this.#seen.size, depth: depth + 1 });
    }
  }

  /** Adds the unseen states that follow; stops at the first promise that is broken. */
  #expand(state: ExploreState, number: number, next: ExploreState[]): string | null {
    let first: string | null = null;
    steps(state, this.#setting, this.#ageing, (_action, following, broken) => {
      if (first !== null) return;
      first = broken ?? brokenPromise(following, this.#setting);
      if (first !== null) return;
      const key = this.#setting.catalogue.textOf(following);
      if (this.#seen.has(key)) return;
      this.#seen.set(key, this.#seen.size);
      this.#parents.push(number);
      next.push(following);
    });
    return first;
  }

  /** Walks from the start along the known way, so that the names in the trace stay the same throughout. */
  #traceTo(last: number, oracle: string): readonly string[] {
    const way: number[] = [];
    for (let number = last; number > 0; number = this.#parents[number] ?? 0) way.unshift(number);
    const trace: string[] = [];
    let state = this.#start;
    for (const number of way) {
      let found: { readonly action: string; readonly state: ExploreState } | null = null;
      steps(state, this.#setting, this.#ageing, (action, following, broken) => {
        if (
          found === null &&
          broken === null &&
          this.#seen.get(this.#setting.catalogue.textOf(following)) === number
        )
          found = { action: action(), state: following };
      });
      if (found === null) throw new Error("the way to a state could not be walked again");
      const { action, state: reached }: { action: string; state: ExploreState } = found;
      trace.push(action);
      state = reached;
    }
    let final: string | null = null;
    steps(state, this.#setting, this.#ageing, (action, following, broken) => {
      if ((broken ?? brokenPromise(following, this.#setting)) === oracle) final ??= action();
    });
    return final === null ? trace : [...trace, final];
  }
}

/** Promises about a state, whatever led to it. */
function brokenPromise(state: ExploreState, { brain, world }: Setting): string | null {
  const holders = state.clients.filter(({ beliefs }) => beliefs.some((belief) => belief !== null)).length;
  if (world.keysAre === "slots" && holders > world.keys) return "slots";
  for (let index = 0; index < state.keys.length; index += 1) {
    const key = state.keys[index];
    if (key === undefined) continue;
    let believers = 0;
    for (let client = 0; client < state.clients.length; client += 1) {
      const belief = state.clients[client]?.beliefs[index] ?? null;
      if (belief === null) continue;
      believers += 1;
      if (believers > 1) return "mutual-belief";
      const { record } = key;
      const own = record !== null && record.generation === belief.generation && record.holder === client;
      if (!own || record.state === "released" || record.expires <= 0) return "belief-has-record";
    }
    const judged = brain.judge(key);
    if (judged !== null) return judged;
  }
  return null;
}

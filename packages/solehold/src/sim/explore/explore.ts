/**
 * Breadth-first search through every state of a small world: all interleavings, all delays, all losses, all
 * clocks within the bound. What holds here holds in every run of that size; what does not comes with the
 * shortest trace that shows it.
 */
import { createPolicy, decide, recordFence } from "../../core/index.ts";
import { withWritten } from "../bugs/wrap.ts";
import {
  believes,
  type ExploreLimits,
  type ExploreRules,
  type ExploreState,
  startState,
  stateKey,
  steps,
} from "./world.ts";

export interface ExploreResult {
  readonly states: number;
  /** The longest shortest way to a state; with a violation, the length of its trace. */
  readonly depth: number;
  readonly violation: { readonly oracle: string; readonly trace: readonly string[] } | null;
}

export const DEFAULT_LIMITS: ExploreLimits = { clients: 2, ticks: 5, ttlTicks: 3, grants: 2, lag: 1 };

/** A lag of one each way changes by two at most, which the margin has to cover. */
export const SHIPPED_RULES: ExploreRules = {
  policy: createPolicy({ maxTtlMs: 100, defaultTtlMs: 4 }),
  drift: { driftRatio: 0, tickMs: 2 },
  decide,
  writes: "conditional",
  beliefFrom: "request",
};

/** Mistakes that show in so small a world, and the promise that each breaks first. */
export const EXPLORABLE_BUGS: Readonly<
  Record<string, { readonly breaks: readonly string[]; readonly rules: Partial<ExploreRules> }>
> = {
  "margin-zero": {
    breaks: ["belief-has-record", "mutual-belief"],
    rules: { drift: { driftRatio: 0, tickMs: 0 } },
  },
  "stamp-from-reply": { breaks: ["belief-has-record", "mutual-belief"], rules: { beliefFrom: "reply" } },
  "no-compare-and-swap": {
    breaks: ["fences-grow", "belief-has-record", "mutual-belief"],
    rules: { writes: "blind" },
  },
  "delete-on-release": {
    breaks: ["fences-grow"],
    rules: { policy: createPolicy({ maxTtlMs: 100, defaultTtlMs: 4, release: "delete" }) },
  },
  "revoke-frees-at-once": {
    breaks: ["belief-has-record", "mutual-belief"],
    rules: { policy: createPolicy({ maxTtlMs: 100, defaultTtlMs: 4, revoked: "claim-at-once" }) },
  },
  "same-fence-on-regrant": {
    breaks: ["fences-grow"],
    rules: {
      decide: withWritten((record, { op }, before) =>
        op === "acquire" && before !== null ? { ...record, generation: before.generation } : record,
      )(decide),
    },
  },
};

interface Visited {
  readonly parent: number;
  readonly action: string;
  readonly depth: number;
}

export function explore(
  limits: ExploreLimits = DEFAULT_LIMITS,
  given: Partial<ExploreRules> = {},
): ExploreResult {
  const rules: ExploreRules = { ...SHIPPED_RULES, ...given };
  const start = startState(limits);
  const seen = new Set<string>([stateKey(start)]);
  const visited: Visited[] = [{ parent: -1, action: "start", depth: 0 }];
  let level: { readonly state: ExploreState; readonly index: number }[] = [{ state: start, index: 0 }];
  let depth = 0;
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { state, index } of level) {
      for (const step of steps(state, limits, rules)) {
        const broken = step.broken ?? brokenPromise(step.state);
        if (broken === null) {
          const key = stateKey(step.state);
          if (seen.has(key)) continue;
          seen.add(key);
        }
        visited.push({ parent: index, action: step.action, depth: depth + 1 });
        if (broken !== null) {
          const trace = traceOf(visited, visited.length - 1);
          return { states: seen.size, depth: depth + 1, violation: { oracle: broken, trace } };
        }
        next.push({ state: step.state, index: visited.length - 1 });
      }
    }
    if (next.length > 0) depth += 1;
    level = next;
  }
  return { states: seen.size, depth, violation: null };
}

function brokenPromise(state: ExploreState): string | null {
  const sure = state.clients.filter((client) => believes(state, client));
  if (sure.length > 1) return "mutual-belief";
  const [believer] = sure;
  if (believer?.belief === undefined || believer.belief === null) return null;
  const { record } = state;
  const own =
    record !== null &&
    recordFence(record) === believer.belief.generation &&
    record.state !== "released" &&
    1_000 + state.now < record.expiresAtMs;
  return own ? null : "belief-has-record";
}

function traceOf(visited: readonly Visited[], last: number): readonly string[] {
  const trace: string[] = [];
  for (let index = last; index > 0; index = visited[index]?.parent ?? 0)
    trace.unshift(visited[index]?.action ?? "");
  return trace;
}

/** Mistakes about time: whose clock, from when, and how much is left. */
import { readClocks } from "solehold/internal";
import { BELIEF, type PlantedBug } from "./bug.ts";
import { heldUntilAborted, withGrants, withInstant, withMembers } from "./wrap.ts";

export const TIME_BUGS: readonly PlantedBug[] = [
  {
    name: "stamp-from-reply",
    mistake: "the belief counts from the reply instead of from before the request",
    caughtBy: [...BELIEF, "abort-in-time"],
    withinSeeds: 300,
    faults: ["slow", "clog", "store-pause", "partition"],
    mutations: {
      executor: (executor, env) =>
        withGrants(executor, (outcome) =>
          outcome.kind === "applied" ? { ...outcome, believedFrom: readClocks(env) } : outcome,
        ),
    },
  },
  {
    name: "margin-zero",
    mistake: "the holder stops exactly when the store does, on a clock that may run slower",
    caughtBy: BELIEF,
    withinSeeds: 300,
    mutations: { clientDrift: () => ({ driftRatio: 0, tickMs: 1 }) },
  },
  {
    name: "wall-clock-only",
    mistake: "the holder measures with a clock that can be set back",
    caughtBy: [...BELIEF, "abort-in-time", "priority"],
    withinSeeds: 300,
    faults: ["wall-step", "partition", "store-pause", "pause"],
    mutations: {
      clientEnv: (env) => withMembers(env, { monotonicMs: () => env.wallMs() }),
      executor: (executor) =>
        withGrants(executor, (outcome) => {
          if (outcome.kind !== "applied") return outcome;
          const { wallMs } = outcome.believedFrom;
          return { ...outcome, believedFrom: { monotonicMs: wallMs, wallMs } };
        }),
    },
  },
  {
    name: "monotonic-clock-only",
    mistake: "the holder measures with a clock that stands still while the machine sleeps",
    caughtBy: [...BELIEF, "abort-in-time"],
    withinSeeds: 300,
    faults: ["suspend"],
    mutations: { clientEnv: (env) => withMembers(env, { wallMs: () => env.monotonicMs() }) },
  },
  {
    name: "held-as-boolean",
    mistake: "held is a boolean that a timer clears, and no timer runs during a pause",
    caughtBy: BELIEF,
    withinSeeds: 300,
    faults: ["pause"],
    mutations: { holding: heldUntilAborted },
  },
  {
    name: "no-expiry-timer",
    mistake: "the holder learns of its end by its next renewal, not by a timer",
    caughtBy: ["abort-in-time"],
    withinSeeds: 200,
    mutations: {
      clientEnv: (env) =>
        withMembers(env, {
          // The timers of expiry are the only ones of a handle that ask to be kept or not kept alive.
          timer: (delayMs, callback, options) =>
            options?.keepAlive === false
              ? { cancel: () => undefined }
              : env.timer(delayMs, callback, options),
        }),
    },
  },
  {
    name: "takeover-by-own-clock",
    mistake: "who is dead is judged by the wall clock of the one who wants the lease",
    caughtBy: [...BELIEF, "fences-grow", "no-resurrection", "linearizability", "reservations", "starvation"],
    withinSeeds: 100,
    mutations: { store: (store, env) => withMembers(store, { now: () => env.wallMs() }) },
  },
  {
    name: "takeover-by-latest",
    mistake: "another's lease is judged dead by the latest time that the store may show",
    caughtBy: [...BELIEF, "reservations"],
    withinSeeds: 500,
    faults: ["slow", "clog", "store-pause"],
    mutations: {
      decide: withInstant((now, { op }) => (op === "acquire" ? { ...now, earliestMs: now.latestMs } : now)),
    },
  },
  {
    name: "stamp-from-earliest",
    mistake: "an expiry is written from the earliest time that the store may show",
    caughtBy: [...BELIEF, "reservations", "liveness"],
    withinSeeds: 500,
    faults: ["slow", "clog", "store-pause"],
    mutations: { decide: withInstant((now) => ({ ...now, stampMs: now.earliestMs })) },
  },
];

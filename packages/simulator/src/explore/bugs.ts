/** Mistakes that show in so small a world, the world that shows each, and the promises that may break first. */
import { decide, given } from "solehold/internal";
import { plantedBug } from "../bugs/registry.ts";
import { withSnapshot } from "../bugs/wrap.ts";
import { type ExploreRules, type ExploreWorldName, SHIPPED_RULES } from "./rules.ts";

export interface ExplorableBug {
  readonly world: ExploreWorldName;
  readonly breaks: readonly string[];
  readonly rules: Partial<ExploreRules>;
}

const BELIEF = ["mutual-belief", "belief-has-record"];

/** The same mistake that the simulator plants, where it sits in a pure function. */
function planted(name: string): Partial<ExploreRules> {
  const { policy, decide: wrap, clientDrift, engineWrites } = plantedBug(name).mutations;
  const changed = policy && { ...SHIPPED_RULES.policy, ...policy };
  return given({ policy: changed, decide: wrap?.(decide), drift: clientDrift, writes: engineWrites });
}

export const EXPLORABLE_BUGS: Readonly<Record<string, ExplorableBug>> = {
  "margin-zero": { world: "clocks", breaks: BELIEF, rules: planted("margin-zero") },
  "stamp-from-reply": { world: "clocks", breaks: BELIEF, rules: { beliefFrom: "reply" } },
  "takeover-by-latest": { world: "late", breaks: BELIEF, rules: planted("takeover-by-latest") },
  "stamp-from-earliest": { world: "late", breaks: BELIEF, rules: planted("stamp-from-earliest") },
  "no-compare-and-swap": {
    world: "late",
    breaks: [...BELIEF, "fences-grow", "ownership"],
    rules: planted("no-compare-and-swap"),
  },
  "delete-on-release": { world: "late", breaks: ["fences-grow"], rules: planted("delete-on-release") },
  "same-fence-on-regrant": {
    world: "clocks",
    breaks: ["fences-grow"],
    rules: planted("same-fence-on-regrant"),
  },
  "renew-expired": { world: "clocks", breaks: ["no-resurrection"], rules: planted("renew-expired") },
  "renew-revives-released": {
    world: "clocks",
    breaks: ["no-resurrection"],
    rules: planted("renew-revives-released"),
  },
  "release-by-key": { world: "clocks", breaks: ["ownership"], rules: planted("release-by-key") },
  "revoke-frees-at-once": { world: "clocks", breaks: BELIEF, rules: planted("revoke-frees-at-once") },
  "release-before-stopping": { world: "clocks", breaks: BELIEF, rules: { stops: "never" } },
  "constant-nonce": { world: "late", breaks: BELIEF, rules: { nonces: "constant" } },
  "collect-at-once": { world: "late", breaks: ["fences-grow"], rules: { collects: "at-once" } },
  "collect-without-floor": { world: "clocks", breaks: ["fences-grow"], rules: { collects: "without-floor" } },
  "expired-stays-taken": {
    world: "clocks",
    breaks: ["claimable"],
    rules: {
      decide: withSnapshot((record, { op }) =>
        op === "acquire" ? { ...record, expiresAtMs: record.expiresAtMs + 1 } : record,
      )(decide),
    },
  },
  "handoff-for-anybody": {
    world: "handoff",
    breaks: ["reservations"],
    rules: planted("handoff-for-anybody"),
  },
  "min-hold-ends-with-release": {
    world: "closed",
    breaks: ["closed-periods"],
    rules: planted("min-hold-ends-with-release"),
  },
  "lock-delay-ignored": {
    world: "closed",
    breaks: ["closed-periods"],
    rules: planted("lock-delay-ignored"),
  },
  "slot-taken-from-its-holder": {
    world: "slots",
    breaks: [...BELIEF, "slots"],
    rules: {
      decide: withSnapshot((record, { op }) =>
        op === "acquire" && record.holder !== "c0" ? { ...record, expiresAtMs: 0 } : record,
      )(decide),
    },
  },
  "break-ignored": { world: "handoff", breaks: ["reservations"], rules: planted("break-ignored") },
  "guard-off": { world: "guard", breaks: ["guarded-writes"], rules: { guard: "off" } },
};

/** Random histories of several holders over one key: what must hold after every step of every history. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createPolicy, type LeasePolicy } from "../../src/core/index.ts";
import { History, type Step } from "./history.ts";

const TTLS = [1, 5, 10, 10, 50];
const WAITS = [0, 1, 2, 4, 5, 6, 9, 10, 11, 40, 49, 50, 51, 100];

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("command", "command", "command", "command", "wait", "wait", "land", "collect"),
    op: fc.constantFrom(
      "acquire",
      "acquire",
      "acquire",
      "renew",
      "renew",
      "renew",
      "release",
      "use",
      "resume",
      "handoff",
      "revoke",
      "break",
    ),
    actor: fc.nat({ max: 2 }),
    successor: fc.nat({ max: 2 }),
    ttlMs: fc.constantFrom(...TTLS),
    waitMs: fc.constantFrom(...WAITS),
    earlyMs: fc.constantFrom(0, 0, 1, 3),
    lateMs: fc.constantFrom(0, 0, 1, 3),
    grant: fc.constantFrom(0, 0, 0, 1, 2),
    term: fc.constantFrom(undefined, undefined, undefined, undefined, 1n, 2n),
    idempotencyKey: fc.constantFrom(undefined, undefined, undefined, "k1"),
    delivery: fc.constantFrom("at once", "at once", "at once", "later"),
  }),
  { minLength: 1, maxLength: 60, size: "max" },
);

const POLICIES: readonly (readonly [string, LeasePolicy])[] = [
  ["the default policy", createPolicy()],
  ["counted generations", createPolicy({ generations: "count" })],
  ["renewal of expired, unclaimed leases", createPolicy({ renewExpired: "if-unclaimed" })],
  ["superseding by name", createPolicy({ reacquire: "supersede" })],
  [
    "the writer policy with tombstones",
    createPolicy({ reacquire: "supersede", renewExpired: "if-unclaimed", proof: "generation" }),
  ],
];

describe("LeaseUniqueness, BeliefConsistency, FencingTokenMonotonic, ExpiredLeaseClaimable", () => {
  it.each(POLICIES)("hold over random histories under %s", (_name, policy) => {
    const seen = { grants: 0, takeovers: 0, renewals: 0, conflicts: 0, denials: 0, replays: 0 };
    fc.assert(
      fc.property(steps, (history) => {
        const world = new History(policy);
        world.play(history);
        for (const name of Object.keys(seen) as (keyof typeof seen)[]) seen[name] += world.counts[name];
      }),
      { numRuns: 1_500 },
    );
    // Histories in which nothing happens would prove nothing.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
  });
});

import fc from "fast-check";
import { decide, type LeaseCommand, type LeaseRecord } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { BUG_CHOICES, WORLD_CHOICES } from "../../cli/src/commands/proof.ts";
import { EXPLORABLE_BUGS, EXPLORE_WORLDS, explore, SHIPPED_RULES } from "../src/index.ts";

const KEY = { tenant: "default", name: "key" };
const OWN = "a".repeat(43);

/** The same record at another time and with other numbers of grants. */
function moved(record: LeaseRecord, ms: number, generations: bigint): LeaseRecord {
  const { endedAtMs, breakAtMs, minHoldUntilMs, handoff } = record;
  return {
    ...record,
    generation: record.generation + generations,
    grantedAtMs: record.grantedAtMs + ms,
    renewedAtMs: record.renewedAtMs + ms,
    expiresAtMs: record.expiresAtMs + ms,
    endedAtMs: endedAtMs === null ? null : endedAtMs + ms,
    breakAtMs: breakAtMs === null ? null : breakAtMs + ms,
    minHoldUntilMs: minHoldUntilMs === null ? null : minHoldUntilMs + ms,
    handoff: handoff === null ? null : { ...handoff, deadlineMs: handoff.deadlineMs + ms },
  };
}

function commandOf(op: LeaseCommand["op"], holder: string): LeaseCommand {
  const base = { key: KEY, nonce: "n", holder, tokenHash: OWN, ttlMs: 4 };
  if (op === "acquire" || op === "use") return { ...base, op, purpose: "Operation" };
  if (op === "handoff") return { ...base, op, successor: "b", withinMs: 2 };
  if (op === "break") return { ...base, op, periodMs: 2 };
  return { ...base, op };
}

const aTime = fc.integer({ min: 990, max: 1_010 });
const aRecord: fc.Arbitrary<LeaseRecord> = fc.record({
  key: fc.constant(KEY),
  holder: fc.constantFrom("a", "b"),
  purpose: fc.constant("Operation" as const),
  tokenHash: fc.constantFrom(OWN, "b".repeat(43)),
  term: fc.constant(0n),
  generation: fc.bigInt({ min: 1n, max: 5n }),
  ttlMs: fc.constant(4),
  grantedAtMs: aTime,
  renewedAtMs: aTime,
  expiresAtMs: aTime,
  endedAtMs: fc.option(aTime),
  state: fc.constantFrom("held", "released", "revoked"),
  renewals: fc.constant(0),
  resumeRequired: fc.boolean(),
  breakAtMs: fc.option(aTime),
  minHoldUntilMs: fc.option(aTime),
  lockDelayMs: fc.constantFrom(0, 3),
  handoff: fc.option(fc.record({ successor: fc.constantFrom("a", "b"), deadlineMs: aTime })),
  nonce: fc.constant("m"),
  idempotency: fc.constant(null),
  note: fc.constant(""),
  reservation: fc.constant(null),
  ticket: fc.constant(""),
  metadata: fc.constant({}),
});

describe("the explorer", () => {
  it("may take states for one that differ in when and after how many grants: decisions do not depend on it", () => {
    const operations = ["acquire", "renew", "release", "use", "handoff", "revoke", "break"] as const;
    const { policy } = SHIPPED_RULES;
    fc.assert(
      fc.property(
        fc.option(aRecord),
        fc.constantFrom(...operations),
        fc.constantFrom("a", "b"),
        fc.integer({ min: 0, max: 2 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.bigInt({ min: 1n, max: 1_000n }),
        (record, op, holder, doubt, ms, generations) => {
          const command = commandOf(op, holder);
          const at = (now: number) => ({
            earliestMs: now - doubt,
            latestMs: now + doubt,
            stampMs: now + doubt,
          });
          const here = decide(command, { record, floor: 3n }, at(1_000), policy);
          const there = decide(
            command,
            { record: record === null ? null : moved(record, ms, generations), floor: 3n + generations },
            at(1_000 + ms),
            policy,
          );
          const { effect } = here;
          expect(there.bundle).toEqual(here.bundle);
          expect(there.effect).toEqual(
            effect.kind === "write" ? { ...effect, record: moved(effect.record, ms, generations) } : effect,
          );
        },
      ),
    );
  });

  it("finds no broken promise in any state of a world with clocks that run slow and fast", () => {
    const { states, violation } = explore({ ...EXPLORE_WORLDS.clocks, ttlTicks: 3, doubt: 0 });
    expect(violation).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  });

  it("finds no broken promise among requests that come late and clients that doubt the time", () => {
    const { states, violation } = explore({ ...EXPLORE_WORLDS.late, ttlTicks: 2 });
    expect(violation).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  });

  it.each(["handoff", "guard", "keys", "closed", "slots"] as const)(
    "finds no broken promise in a smaller world of %s",
    (name) => {
      const { violation } = explore({ ...EXPLORE_WORLDS[name], ttlTicks: 2, lag: 0, late: 0 });
      expect(violation).toBeNull();
    },
  );

  it.each(Object.entries(EXPLORABLE_BUGS))("shows the shortest way to %s", (_name, bug) => {
    const { violation, depth } = explore(EXPLORE_WORLDS[bug.world], { rules: bug.rules });
    expect(bug.breaks).toContain(violation?.oracle);
    expect(violation?.trace).toHaveLength(depth);
  });

  it.each([
    ["crowd", "margin-zero"],
    ["both", "stamp-from-reply"],
    ["keys", "same-fence-on-regrant"],
  ] as const)("could find a mistake in the world of %s too: %s", (world, name) => {
    const bug = EXPLORABLE_BUGS[name];
    expect(bug?.breaks).toContain(
      explore(EXPLORE_WORLDS[world], { rules: bug?.rules ?? {} }).violation?.oracle,
    );
  });

  it("is offered on the command line with every bug and every world that it knows", () => {
    expect([...BUG_CHOICES].sort()).toEqual(Object.keys(EXPLORABLE_BUGS).sort());
    expect([...WORLD_CHOICES].sort()).toEqual(Object.keys(EXPLORE_WORLDS).sort());
  });
});

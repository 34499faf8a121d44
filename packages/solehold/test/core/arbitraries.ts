/** Arbitrary valid records, commands, instants and policies, and arbitrary nonsense, for property tests. */
import fc from "fast-check";
import {
  createPolicy,
  type IdempotencyMark,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  MAX_DURATION_MS,
  MAX_INSTANT_MS,
  MAX_U64,
  nameProblem,
  PURPOSES,
  type StoreInstant,
} from "../../src/core/index.ts";
import { KEY } from "./cell.ts";

const TOKEN_CHARACTERS = "ABCXYZabcxyz0189_-:./";

function tokens(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...TOKEN_CHARACTERS), minLength, maxLength });
}

/** Few distinct values, so that commands and records often mean the same grant. */
export const hashes = fc.oneof(
  fc.constantFrom("A".repeat(43), "B".repeat(43), "C".repeat(43)),
  tokens(43, 43),
);

export const holders = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c") },
  {
    weight: 1,
    arbitrary: fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
      .map((text) => text.normalize("NFC"))
      .filter((text) => nameProblem(text, 128) === null),
  },
);

export const u64s = fc.oneof(
  fc.bigInt(0n, 5n),
  fc.bigInt(0n, MAX_U64),
  fc.constantFrom(MAX_U64, MAX_U64 - 1n),
);
const smallInstants = fc.integer({ min: 0, max: 20_000 });
export const instants = fc.oneof(
  { weight: 4, arbitrary: smallInstants },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: MAX_INSTANT_MS }) },
);
export const ttls = fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 3_600_000 }));
const purposes = fc.constantFrom(...PURPOSES);

const marks = fc.record({
  keyHash: hashes,
  fingerprint: hashes,
  sealedToken: fc.oneof(fc.constant(""), tokens(1, 40)),
});

const OPS = ["acquire", "renew", "release", "use", "resume", "handoff", "revoke", "break"] as const;

const storedMarks: fc.Arbitrary<IdempotencyMark> = fc
  .tuple(fc.constantFrom(...OPS), marks)
  .map(([op, mark]) => ({ op, ...mark }));

const metadata = fc.dictionary(
  fc.constantFrom("url", "build.id", "a/b", "x_y-z"),
  fc.oneof(fc.constant(""), holders),
  { maxKeys: 3, noNullPrototype: true },
);

/** Every record that the codec must carry; the fields need not fit each other. */
export const records: fc.Arbitrary<LeaseRecord> = fc.record({
  key: fc.constant(KEY),
  holder: holders,
  purpose: purposes,
  tokenHash: hashes,
  term: u64s,
  generation: u64s,
  ttlMs: ttls,
  grantedAtMs: instants,
  renewedAtMs: instants,
  expiresAtMs: instants,
  endedAtMs: fc.option(instants),
  state: fc.constantFrom("held", "held", "released", "revoked"),
  renewals: fc.nat(),
  resumeRequired: fc.boolean(),
  breakAtMs: fc.option(instants),
  minHoldUntilMs: fc.option(instants),
  lockDelayMs: fc.constantFrom(0, 1, 30_000),
  handoff: fc.option(fc.record({ successor: holders, deadlineMs: instants })),
  nonce: tokens(1, 64),
  idempotency: fc.option(storedMarks),
  note: fc.oneof(fc.constant(""), holders),
  reservation: fc.option(fc.record({ ticket: tokens(1, 64), deadlineMs: instants })),
  ticket: fc.oneof(fc.constant(""), tokens(1, 64)),
  metadata: metadata,
});

export const storeInstants: fc.Arbitrary<StoreInstant> = fc
  .tuple(instants, fc.nat({ max: 3_000 }))
  .map(([earliestMs, width]) => {
    const latestMs = Math.min(earliestMs + width, MAX_INSTANT_MS);
    return { earliestMs, latestMs, stampMs: latestMs };
  });

export const policies: fc.Arbitrary<LeasePolicy> = fc
  .record({
    minTtlMs: fc.constantFrom(1, 100),
    maxTtlMs: fc.constantFrom(30_000, 3_600_000, MAX_DURATION_MS),
    reacquire: fc.constantFrom("deny", "supersede"),
    renewExpired: fc.constantFrom("deny", "if-unclaimed"),
    release: fc.constantFrom("tombstone", "delete"),
    revoked: fc.constantFrom("claim-at-expiry", "claim-at-once"),
    proof: fc.constantFrom("token", "generation"),
    generations: fc.constantFrom("clock", "count"),
    baseTerm: fc.constantFrom(0n, 1n),
    lockDelayMs: fc.constantFrom(0, 0, 5_000),
  })
  .map((fields) => createPolicy(fields));

const base = { key: fc.constant(KEY), nonce: tokens(1, 64), idempotency: marks };
const owner = { ...base, holder: holders, tokenHash: hashes, generation: u64s };
export const OPTIONAL = new Set([
  "idempotency",
  "generation",
  "term",
  "note",
  "provenTokenHash",
  "metadata",
  "holdAtLeastMs",
  "lockDelayMs",
  "ticket",
  "reserveFor",
]);

function command(op: string, fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<LeaseCommand> {
  const requiredKeys = ["op", ...Object.keys(fields).filter((field) => !OPTIONAL.has(field))];
  const model: Record<string, fc.Arbitrary<unknown>> = { op: fc.constant(op), ...fields };
  return fc.record(model, { requiredKeys }) as fc.Arbitrary<unknown> as fc.Arbitrary<LeaseCommand>;
}

export const commands: fc.Arbitrary<LeaseCommand> = fc.oneof(
  command("acquire", {
    ...base,
    holder: holders,
    purpose: purposes,
    ttlMs: ttls,
    tokenHash: hashes,
    provenTokenHash: hashes,
    term: u64s,
    note: holders,
    metadata,
    holdAtLeastMs: fc.constantFrom(0, 1, 60_000),
    lockDelayMs: fc.constantFrom(0, 1, 60_000),
    ticket: tokens(1, 64),
  }),
  command("renew", { ...owner, ttlMs: ttls, term: u64s }),
  command("release", {
    ...owner,
    reserveFor: fc.record({ ticket: tokens(1, 64), withinMs: fc.integer({ min: 1, max: 10_000 }) }),
  }),
  command("use", { ...owner, purpose: purposes }),
  command("resume", owner),
  command("handoff", { ...owner, successor: holders, withinMs: ttls }),
  command("revoke", { ...base, generation: u64s }),
  command("break", { ...base, generation: u64s, periodMs: ttls }),
);

/** What JSON, a careless caller or an attacker may send instead of a value. */
export const nonsense: fc.Arbitrary<unknown> = fc.oneof(
  fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
  }),
  fc.constantFrom<unknown>(
    undefined,
    null,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -0,
    -1,
    0.5,
    2 ** 53,
    -1n,
    2n ** 64n,
    Symbol("s"),
    "",
    " ",
    "\u0000",
    "\ud800",
    "$floor",
    "a\nb",
    "__proto__",
    [],
    {},
    () => "acquire",
  ),
);

/** Every field of a record comes back as it was written, whatever a person or a clock put into it. */
import {
  type IdempotencyMark,
  type LeaseRecord,
  MAX_HOLDER_LENGTH,
  MAX_NOTE_LENGTH,
  MAX_TOKEN_LENGTH,
  MAX_U64,
  PURPOSES,
} from "../core/index.ts";
import { claimCreated, claimFound } from "./assertions.ts";
import { type BenchCase, readOne } from "./store-fixture.ts";

const HASH = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg";
const LATEST_MS = Number.MAX_SAFE_INTEGER;
const GRANT_MARK = { keyHash: HASH, fingerprint: HASH, sealedToken: "sealed:token" };

/** One change of one field each, so that a failure names the field. */
const VARIANTS: readonly (readonly [string, Partial<LeaseRecord>])[] = [
  ["a generation above 2^53", { generation: 2n ** 53n + 1n }],
  ["the largest generation", { generation: MAX_U64 }],
  ["the largest term", { term: MAX_U64 }],
  ["a term and a generation of zero", { term: 0n, generation: 0n }],
  ["the latest instants", { grantedAtMs: LATEST_MS, renewedAtMs: LATEST_MS, expiresAtMs: LATEST_MS }],
  ["the earliest instants", { grantedAtMs: 0, renewedAtMs: 0, expiresAtMs: 0, endedAtMs: 0 }],
  ["a long ttl", { ttlMs: 2 ** 40 }],
  ["many renewals", { renewals: 2 ** 40 }],
  ["a resume that is due", { resumeRequired: true }],
  ["a break", { breakAtMs: 1_750_000_000_123 }],
  ["a minimum hold", { minHoldUntilMs: 1_750_000_000_321 }],
  ["a lock-delay", { lockDelayMs: 15_000 }],
  ["a released lease", { state: "released", endedAtMs: 1_750_000_000_456 }],
  ["a revoked lease", { state: "revoked", endedAtMs: 1_750_000_000_789 }],
  [
    "a handoff",
    { state: "released", handoff: { successor: "the next holder", deadlineMs: 1_750_000_009_999 } },
  ],
  ["an idempotency mark", { idempotency: mark("sealed:token/with.every-sign_") }],
  ["an idempotency mark without a sealed token", { idempotency: mark("") }],
  ["two idempotency marks", { idempotency: { ...mark(""), op: "renew", grant: GRANT_MARK } }],
  ["the longest sealed token", { idempotency: mark("s".repeat(MAX_TOKEN_LENGTH * 2)) }],
  ["the longest nonce", { nonce: "n:./_-".padEnd(64, "N") }],
  ["a nonce of one character", { nonce: "n" }],
  ["the longest note", { note: "x".repeat(MAX_NOTE_LENGTH) }],
  ["a note with quotes and braces", { note: `{"a": 'b', \\n \\ $1 {0} %s \`x\` } --; drop` }],
  ["a note in many scripts", { note: "Müller 漢字 κόσμος мир שלום 🦊 \u{1F9D1}\u{1F3FD} é ﬀ" }],
  ["a holder in many scripts", { holder: "Zoë/東京/🦊" }],
  ["the longest holder", { holder: "h".repeat(MAX_HOLDER_LENGTH) }],
  ["a holder with spaces and separators", { holder: "a b\u00a0c:d/e\\f|g" }],
];

function mark(sealedToken: string): IdempotencyMark {
  return { op: "acquire", keyHash: HASH, fingerprint: HASH, sealedToken };
}

export const contentCases: readonly BenchCase[] = [
  {
    title: "every field of a record comes back unchanged",
    run: async (bench) => {
      const store = await bench.open();
      const purposes = PURPOSES.map((purpose) => [`purpose ${purpose}`, { purpose }] as const);
      for (const [index, [what, changes]] of [...VARIANTS, ...purposes].entries()) {
        const record = bench.record(bench.key(`field/${index}`), changes);
        await claimCreated(store, record);
        claimFound(await readOne(store, record.key), record, what);
      }
    },
  },
  {
    title: "a second client reads what the first one wrote",
    run: async (bench) => {
      const store = await bench.open();
      const second = await bench.openSecond(store);
      for (const [index, [what, changes]] of VARIANTS.entries()) {
        const record = bench.record(bench.key(`shared/${index}`), changes);
        await claimCreated(store, record);
        claimFound(await readOne(second, record.key), record, what);
      }
    },
  },
];

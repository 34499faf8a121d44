/**
 * Names are chosen by people and by attackers. Each is one key and no other, stays in its tenant, and is
 * found again under exactly its own spelling.
 */
import { MAX_NAME_LENGTH } from "../core/index.ts";
import { claimAbsent, claimApplied, claimCreated, claimFound, describeKey } from "./assertions.ts";
import { claimListedInAnyOrder } from "./listing.ts";
import { applyAll, type BenchCase, nth, readAll, readOne } from "./store-fixture.ts";

/** All valid names, chosen to collide in stores that fold, decode, normalise, glob or walk them. */
export const HOSTILE_NAMES: readonly string[] = [
  ...[".", "..", "../..", "../x", "/", "//", "a", "a/", "a//", "a/b", "a//b", "a/./b", "a/../b", "/a", "./a"],
  ...[
    "%2e%2e",
    "%2F",
    "%2f",
    "%00",
    "a%2Fb",
    "%",
    "%25",
    "+",
    "a+b",
    "a b",
    "a  b",
    "a\u00a0b",
    "\\",
    "a\\b",
  ],
  ...["'", '"', "`", "a'b", 'a"b', "';--", "\\0", "\\n", "*", "?", "[", "]", "[a]", "[a-z]", "{a}", "{", "}"],
  ...["a*", "a?", "^a", "a$", "a$b", "(", "|", "&", "<", ">", "#", "~", ":", ";", ",", "=", "!", "@"],
  ...[
    "A",
    "ab",
    "aB",
    "Ab",
    "AB",
    "abc",
    "a.lease.json",
    "a.json",
    "a.lock",
    "a.tmp",
    ".hidden",
    "con",
    "NUL",
  ],
  ...[
    "\u00e9",
    "e",
    "\u00e8",
    "\u00df",
    "ss",
    "\u0130",
    "i",
    "I",
    "\u0131",
    "\u03c3",
    "\u03c2",
    "漢字",
    "漢",
  ],
  ...["🦊", "🦊🦊", "\u{1F468}", "\uff41", "\ufb01", "fi", "\uffee", "\u{10000}", "__proto__", "constructor"],
  ...[
    "0",
    "00",
    "1e1",
    "10",
    "-1",
    "null",
    "true",
    "undefined",
    "NaN",
    "default",
    "-",
    "--",
    "_",
    "a_b",
    "a-b",
  ],
  ...["n".repeat(MAX_NAME_LENGTH), "n".repeat(MAX_NAME_LENGTH - 1), "n/".repeat(MAX_NAME_LENGTH / 2)],
  ...["\u6f22".repeat(MAX_NAME_LENGTH), "🦊".repeat(MAX_NAME_LENGTH / 2), "../".repeat(85)],
];

export const keyCases: readonly BenchCase[] = [
  {
    title: "hostile names are keys like any other and never collide",
    run: async (bench) => {
      const store = await bench.open();
      const records = HOSTILE_NAMES.map((name, index) =>
        bench.record(bench.key(name), { generation: BigInt(index + 1), note: `number ${index}` }),
      );
      const size = Math.min(50, store.capabilities.maxBatch);
      for (let start = 0; start < records.length; start += size) {
        const part = records.slice(start, start + size);
        const results = await applyAll(
          store,
          part.map((next) => ({ key: next.key, expected: null, next })),
        );
        for (const [index, record] of part.entries()) {
          claimApplied(nth(results, index), `create ${describeKey(record.key)} beside all the others`);
        }
      }
      for (const record of records) {
        claimFound(await readOne(store, record.key), record, describeKey(record.key));
      }
      await claimListedInAnyOrder(
        bench,
        store,
        { tenant: bench.tenant, prefix: "", limit: 40 },
        HOSTILE_NAMES,
      );
    },
  },
  {
    title: "a prefix in a listing is plain text, whatever it contains",
    run: async (bench) => {
      const store = await bench.open();
      const writes = HOSTILE_NAMES.map((name) => bench.record(bench.key(name)));
      const size = Math.min(50, store.capabilities.maxBatch);
      for (let start = 0; start < writes.length; start += size) {
        const part = writes.slice(start, start + size);
        await applyAll(
          store,
          part.map((next) => ({ key: next.key, expected: null, next })),
        );
      }
      for (const prefix of [
        "a",
        "a/",
        "a//",
        "..",
        "../",
        "%",
        "*",
        "[",
        "\\",
        "'",
        "?",
        "A",
        "n",
        "🦊",
        "_",
        "{",
      ]) {
        const expected = HOSTILE_NAMES.filter((name) => name.startsWith(prefix));
        await claimListedInAnyOrder(bench, store, { tenant: bench.tenant, prefix, limit: 1_000 }, expected);
      }
    },
  },
  {
    title: "tenants with the same names, or names that look like tenants, never see each other",
    run: async (bench) => {
      const store = await bench.open();
      const [one, two] = [bench.newTenant(), bench.newTenant()];
      const keys = [
        { tenant: one, name: "job" },
        { tenant: two, name: "job" },
        { tenant: one, name: `${two}/job` },
        { tenant: `${one}.`, name: "job" },
        { tenant: `${one}-x`, name: "job" },
        { tenant: one, name: `../${two}/other` },
      ];
      const records = keys.map((key, index) => bench.record(key, { generation: BigInt(index + 1) }));
      for (const record of records) await claimCreated(store, record);
      const stored = await readAll(store, keys);
      for (const [index, record] of records.entries()) {
        claimFound(nth(stored, index), record, describeKey(record.key));
      }
      claimAbsent(
        await readOne(store, { tenant: two, name: "other" }),
        "a name that another tenant climbed to",
      );
      const expected = keys.filter(({ tenant }) => tenant === one).map(({ name }) => name);
      await claimListedInAnyOrder(bench, store, { tenant: one, prefix: "", limit: 10 }, expected);
    },
  },
];

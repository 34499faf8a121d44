/** The heart of the contract: a write happens exactly when the version it names is still the current one. */
import { ok } from "node:assert/strict";
import type { LeaseRecord } from "../core/index.ts";
import type { ConditionalWrite, LeaseStore } from "../store/index.ts";
import {
  claimAbsent,
  claimApplied,
  claimConflict,
  claimCreated,
  claimDeleted,
  claimFound,
  claimStored,
} from "./assertions.ts";
import {
  applyAll,
  applyOne,
  type BenchCase,
  nth,
  readAll,
  readOne,
  type StoreBench,
} from "./store-fixture.ts";

export const writeCases: readonly BenchCase[] = [
  {
    title: "a key that was never written is absent",
    run: async (bench) => {
      const store = await bench.open();
      claimAbsent(await readOne(store, bench.key("never")), "a key that was never written");
    },
  },
  {
    title: "a created record is found with the version that its write returned",
    run: async (bench) => {
      const store = await bench.open();
      const record = bench.record(bench.key("created"));
      const version = await claimCreated(store, record);
      const found = await claimStored(store, record, "after the create");
      ok(found.version === version, `read says version ${found.version}, the write said ${version}`);
    },
  },
  {
    title: "a create fails where a record exists, and the conflict shows that record",
    run: async (bench) => {
      const store = await bench.open();
      const first = bench.record(bench.key("taken"));
      const version = await claimCreated(store, first);
      const second = bench.record(first.key, { holder: "holder-2" });
      const current = claimConflict(await applyOne(store, first.key, null, second), "a second create");
      const found = claimFound(current, first, "the conflict's current record");
      ok(found.version === version, `the conflict names version ${found.version}, current is ${version}`);
      await claimStored(store, first, "after the failed create");
    },
  },
  {
    title: "an update of the current version is applied, and an older version is refused ever after",
    run: async (bench) => {
      const store = await bench.open();
      const first = bench.record(bench.key("updated"));
      const oldVersion = await claimCreated(store, first);
      const second = bench.record(first.key, { generation: 2n });
      const version = claimApplied(await applyOne(store, first.key, oldVersion, second), "the update");
      const late = bench.record(first.key, { holder: "late", generation: 2n });
      const current = claimConflict(
        await applyOne(store, first.key, oldVersion, late),
        "an update of the older version",
      );
      const found = claimFound(current, second, "the conflict's current record");
      ok(found.version === version, `the conflict names version ${found.version}, current is ${version}`);
      await claimStored(store, second, "after the refused update");
    },
  },
  {
    title: "an update where no record exists conflicts with absence and creates nothing",
    run: async (bench) => {
      const store = await bench.open();
      const other = bench.record(bench.key("other"));
      const version = await claimCreated(store, other);
      const key = bench.key("missing");
      const result = await applyOne(store, key, version, bench.record(key));
      claimAbsent(claimConflict(result, "an update of an absent key"), "the conflict's current record");
      claimAbsent(await readOne(store, key), "after the refused update");
    },
  },
  {
    title: "a version never comes back, not even when equal content is written again",
    run: async (bench) => {
      const store = await bench.open();
      const key = bench.key("aba");
      const [x, y, xAgain] = [bench.record(key), bench.record(key, { generation: 2n }), bench.record(key)];
      const versions = [await claimCreated(store, x)];
      for (const next of [y, xAgain]) {
        const expected = nth(versions, versions.length - 1);
        versions.push(claimApplied(await applyOne(store, key, expected, next), "a step of X, Y, X"));
      }
      const distinct = new Set(versions);
      ok(distinct.size === versions.length, `versions ${versions.join(", ")} repeat: a late write could act`);
      const stale = await applyOne(store, key, nth(versions, 0), bench.record(key, { holder: "late" }));
      claimConflict(stale, "an update of the first X after X, Y, X");
      await claimStored(store, xAgain, "after X, Y, X");
    },
  },
  {
    title: "a delete on condition happens only on the current version, or is not offered at all",
    run: async (bench) => {
      const store = await bench.open();
      const first = bench.record(bench.key("deleted"));
      const oldVersion = await claimCreated(store, first);
      const second = bench.record(first.key, { state: "released", endedAtMs: first.grantedAtMs });
      const version = claimApplied(await applyOne(store, first.key, oldVersion, second), "the update");
      if (!store.capabilities.conditionalDelete) {
        await applyOne(store, first.key, version, null).catch(() => undefined);
        await claimStored(store, second, "after a delete that the store says it cannot do");
        return;
      }
      const refused = await applyOne(store, first.key, oldVersion, null);
      claimFound(claimConflict(refused, "a delete of an older version"), second, "the conflict's record");
      await claimStored(store, second, "after the refused delete");
      claimDeleted(await applyOne(store, first.key, version, null), "a delete of the current version");
      claimAbsent(await readOne(store, first.key), "after the delete");
      const again = await applyOne(store, first.key, version, null);
      claimAbsent(claimConflict(again, "a second delete"), "the second delete's current record");
      await claimVersionIsNew(bench, store, first.key.name, [oldVersion, version]);
    },
  },
  {
    title: "the writes of a batch succeed or fail each on its own, answered in the order given",
    run: async (bench) => {
      const store = await bench.open();
      const [one, two] = [bench.record(bench.key("one")), bench.record(bench.key("two"))];
      const versionOne = await claimCreated(store, one);
      await claimCreated(store, two);
      const nextOne = bench.record(one.key, { generation: 2n });
      const three = bench.record(bench.key("three"));
      const results = await applyAll(store, [
        { key: two.key, expected: versionOne, next: bench.record(two.key, { holder: "wrong" }) },
        { key: three.key, expected: null, next: three },
        { key: one.key, expected: versionOne, next: nextOne },
      ]);
      claimFound(claimConflict(nth(results, 0), "the first of three writes"), two, "its current record");
      claimApplied(nth(results, 1), "the second of three writes");
      claimApplied(nth(results, 2), "the third of three writes");
      const stored = await readAll(store, [one.key, three.key, two.key, bench.key("four")]);
      claimFound(nth(stored, 0), nextOne, "the first of four reads");
      claimFound(nth(stored, 1), three, "the second of four reads");
      claimFound(nth(stored, 2), two, "the third of four reads");
      claimAbsent(nth(stored, 3), "the fourth of four reads");
    },
  },
  {
    title: "a batch as large as the store takes is written and read whole",
    run: async (bench) => {
      const store = await bench.open();
      const { maxBatch } = store.capabilities;
      ok(Number.isSafeInteger(maxBatch) && maxBatch >= 1, `maxBatch must be 1 or more, got ${maxBatch}`);
      const count = Math.min(bench.amount(1_000, 100), maxBatch);
      const records = Array.from({ length: count }, (_, index) =>
        bench.record(bench.key(`bulk/${index}`), { generation: BigInt(index + 1) }),
      );
      const writes: ConditionalWrite[] = records.map((next) => ({ key: next.key, expected: null, next }));
      const versions = (await applyAll(store, writes)).map((result) => claimApplied(result, "a bulk create"));
      ok(versions.length === count, `${versions.length} of ${count} writes were answered`);
      const stored = await readAll(
        store,
        records.map(({ key }) => key),
      );
      for (const [index, record] of records.entries()) {
        const found = claimFound(nth(stored, index), record, `bulk record ${index}`);
        ok(found.version === versions[index], `bulk record ${index} has another version than its write said`);
      }
    },
  },
  {
    title: "an update leaves the new record and nothing of the old, alone and in a batch",
    run: async (bench) => {
      const store = await bench.open();
      for (const [index, changes] of changesOfARecord(bench).entries()) {
        const [lone, other] = [
          bench.record(bench.key(`lone/${index}`)),
          bench.record(bench.key(`other/${index}`)),
        ];
        const expected = await claimCreated(store, lone);
        const [loneNext, otherNext] = [bench.record(lone.key, changes), bench.record(other.key, changes)];
        const write = { key: lone.key, expected, next: loneNext };
        const version = claimApplied(nth(await applyAll(store, [write]), 0), "the lone write");
        const back = bench.record(lone.key);
        const results = await applyAll(store, [
          { key: other.key, expected: await claimCreated(store, other), next: otherNext },
          { key: lone.key, expected: version, next: back },
        ]);
        for (const result of results) claimApplied(result, "a write of the batch");
        const said = `after ${Object.keys(changes).join(", ")} changed`;
        const found = await claimStored(store, otherNext, said);
        ok(found.version === claimApplied(nth(results, 0), said), `${said} the version is not what was said`);
        await claimStored(store, back, `${said} back`);
      }
    },
  },
  {
    title: "an empty batch and an empty read are answered with nothing",
    run: async (bench) => {
      const store = await bench.open();
      await applyAll(store, []);
      await readAll(store, []);
    },
  },
];

/** One for each way in which a lease goes on, and for what few leases have. */
function changesOfARecord(bench: StoreBench): readonly Partial<LeaseRecord>[] {
  const { grantedAtMs, expiresAtMs } = bench.record(bench.key("model"));
  const [laterMs, muchLaterMs] = [grantedAtMs + 1_234, expiresAtMs + 1_234];
  const tokenHash = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg";
  return [
    { renewedAtMs: laterMs, expiresAtMs: muchLaterMs, renewals: 1 },
    { renewedAtMs: laterMs, expiresAtMs: muchLaterMs, renewals: 12, ttlMs: 40_000 },
    { state: "released", endedAtMs: laterMs },
    { state: "released", endedAtMs: laterMs, handoff: { successor: "heir", deadlineMs: muchLaterMs } },
    { state: "revoked", endedAtMs: laterMs, expiresAtMs: laterMs },
    {
      generation: 7n,
      grantedAtMs: laterMs,
      renewedAtMs: laterMs,
      expiresAtMs: laterMs + 30_000,
      tokenHash,
    },
    { generation: 7n, holder: "holder-2", purpose: "StateWrite", resumeRequired: true, tokenHash },
    { term: 3n },
    { generation: 7n },
    { breakAtMs: laterMs },
    { minHoldUntilMs: laterMs },
    { note: "in the night" },
    { idempotency: { op: "acquire", keyHash: tokenHash, fingerprint: tokenHash, sealedToken: "" } },
    { nonce: `${bench.record(bench.key("model")).nonce}-and-longer-than-others` },
  ];
}

async function claimVersionIsNew(
  bench: StoreBench,
  store: LeaseStore,
  name: string,
  used: readonly string[],
): Promise<void> {
  const version = await claimCreated(store, bench.record(bench.key(name)));
  ok(!used.includes(version), `version ${version} was used before the delete: it must never come back`);
}

/** When things go wrong: damaged values, closed clients, replies that never come, requests that come late. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { type ApplyReply, type LeaseStore, StoreError } from "../store/index.ts";
import { claimApplied, claimConflict, claimCreated, claimStored, claimStoreError } from "./assertions.ts";
import { claimListing, namesOf } from "./listing.ts";
import { applyOne, type BenchCase, readOne, type StoreBench } from "./store-fixture.ts";

/** How often a call may end before it was sent: with a new connection, say, that was never greeted. */
const MAX_UNSENT = 5;

/** That the writes of this call may or may not have happened, and that the store says so. */
async function claimUnknown(
  bench: StoreBench,
  what: string,
  send: () => Promise<ApplyReply>,
  unsent = 0,
): Promise<void> {
  try {
    const { results } = await bench.inTime(what, send());
    for (const result of results)
      ok(result.kind === "unknown", `${what}: got ${result.kind} without a reply`);
  } catch (error) {
    ok(error instanceof StoreError, `${what}: expected a StoreError, got ${String(error)}`);
    if (error.outcome === "unknown") return;
    ok(unsent < MAX_UNSENT, `${what}: the outcome must be unknown, the store says ${error.outcome}`);
    await claimUnknown(bench, what, send, unsent + 1);
  }
}

/** Until a healthy client sees the nonce: the lost request was carried out, perhaps a moment later. */
async function claimArrives(
  bench: StoreBench,
  store: LeaseStore,
  name: string,
  nonce: string,
): Promise<void> {
  const look = async (): Promise<void> => {
    const stored = await readOne(store, bench.key(name));
    if (stored.kind !== "found" || stored.record.nonce !== nonce) return look();
  };
  await bench.inTime("a write whose reply was lost never showed", look());
}

export const failureCases: readonly BenchCase[] = [
  {
    title:
      "a damaged value is reported, listed as corrupt, never overwritten by a create, and can be repaired",
    needs: "corrupt",
    run: async (bench) => {
      const store = await bench.open();
      const [good, bad] = [bench.record(bench.key("good")), bench.record(bench.key("bad"))];
      await claimCreated(store, good);
      await claimCreated(store, bad);
      await bench.corrupt(bad.key);
      const { records } = await store.read([bad.key, good.key]);
      const [damaged, healthy] = records;
      ok(damaged?.kind === "corrupt", `a damaged value reads as ${damaged?.kind}`);
      ok(damaged.detail !== "", "a damaged value must say what is wrong with it");
      ok(healthy?.kind === "found", "a damaged value must not hide its neighbour");
      const query = { tenant: bench.tenant, prefix: "", limit: 10 };
      await claimListing(bench, store, query, ({ records: listed, corrupt }) =>
        deepStrictEqual([namesOf(listed), corrupt], [["good"], ["bad"]]),
      );
      const repaired = bench.record(bad.key, { generation: 2n });
      const create = claimConflict(await applyOne(store, bad.key, null, repaired), "a create over damage");
      ok(create.kind === "corrupt", `the conflict shows ${create.kind}, not the damaged value`);
      const repair = await applyOne(store, bad.key, damaged.version, repaired);
      claimApplied(repair, "the repair on the damaged version");
      await claimStored(store, repaired, "after the repair");
    },
  },
  {
    title: "after close() every call rejects with a StoreError of kind closed, and a second close is fine",
    run: async (bench) => {
      const store = await bench.open();
      const key = bench.key("closed");
      await claimCreated(store, bench.record(key));
      await store.close();
      await store.close();
      const next = bench.record(bench.key("late"));
      const calls: Readonly<Record<string, () => Promise<unknown>>> = {
        read: () => store.read([key]),
        apply: () => store.apply([{ key: next.key, expected: null, next }]),
        ...(store.list === undefined
          ? {}
          : { list: async () => store.list?.({ tenant: bench.tenant, prefix: "", limit: 1 }) }),
        ...(store.watch === undefined
          ? {}
          : { watch: async () => store.watch?.({ tenant: null, prefix: "" }, () => undefined) }),
      };
      for (const [name, call] of Object.entries(calls)) {
        const error = await claimStoreError(call, `${name} after close`);
        ok(error.kind === "closed", `${name} after close: the kind is ${error.kind}`);
        ok(error.outcome === "not-applied", `${name} after close: the outcome is ${error.outcome}`);
      }
    },
  },
  {
    title: "a write whose reply was lost is unknown, is found by its nonce, and is not done twice",
    needs: "openFaulty",
    run: async (bench) => {
      const store = await bench.open();
      const faulty = await bench.openFaulty();
      const first = bench.record(bench.key("lost"));
      const version = await claimCreated(faulty.store, first);
      const next = bench.record(first.key, { generation: 2n });
      await faulty.loseReplies();
      const update = () => faulty.store.apply([{ key: first.key, expected: version, next }]);
      await claimUnknown(bench, "an update whose reply was lost", update);
      await faulty.heal();
      await claimArrives(bench, store, "lost", next.nonce);
      const again = await applyOne(store, first.key, version, bench.record(first.key, { generation: 2n }));
      claimConflict(again, "the same version again");
      await claimStored(store, next, "after the lost reply");
    },
  },
  {
    title: "a request that arrives after its caller gave up cannot act on a version that has moved",
    needs: "openFaulty",
    run: async (bench) => {
      const store = await bench.open();
      const faulty = await bench.openFaulty();
      const first = bench.record(bench.key("held"));
      const version = await claimCreated(faulty.store, first);
      await faulty.holdRequests();
      const late = bench.record(first.key, { holder: "late", generation: 2n });
      const update = () => faulty.store.apply([{ key: first.key, expected: version, next: late }]);
      await claimUnknown(bench, "an update that was held on the way", update);
      const settled = bench.record(first.key, { generation: 2n });
      claimApplied(await applyOne(store, first.key, version, settled), "the write that settles it");
      await faulty.heal();
      await claimStored(store, settled, "after the late request was let through");
      await bench.inTime("the healed client", readUntilAnswered(faulty.store, bench));
      await claimStored(store, settled, "after the client with the late request works again");
    },
  },
];

/** A client may need a moment, or a new connection, after its network came back. */
async function readUntilAnswered(store: LeaseStore, bench: StoreBench): Promise<void> {
  for (;;) {
    try {
      await store.read([bench.key("held")]);
      return;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      await new Promise<void>((resolve) => bench.env.timer(20, resolve, { keepAlive: true }));
    }
  }
}

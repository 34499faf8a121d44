/** What the embedded store does beyond the kit of all stores. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Env, ManualEnv, realEnv } from "../../../src/env/index.ts";
import type { ConditionalWrite, LeaseStore, WriteResult } from "../../../src/store/index.ts";
import { DataFile } from "../../../src/stores/embedded/data-file.ts";
import { loadLmdb, openDatabases } from "../../../src/stores/embedded/database.ts";
import { commitFailure } from "../../../src/stores/embedded/failure.ts";
import { openEmbeddedStore } from "../../../src/stores/embedded/index.ts";
import { openWithSeams } from "../../../src/stores/embedded/open.ts";
import { readMembers } from "../../../src/stores/embedded/state.ts";
import {
  Child,
  closing,
  found,
  get,
  keyNamed,
  put,
  putApplied,
  recordNamed,
  temporaryFolder,
} from "./fixtures.ts";

function creates(count: number, prefix: string): ConditionalWrite[] {
  return Array.from({ length: count }, (_, index) => {
    const next = recordNamed(`${prefix}/${index}`, { generation: BigInt(index) });
    return { key: next.key, expected: null, next };
  });
}

/** How many transactions the folder has seen, from its data file. */
function commits(folder: string): number {
  const file = new DataFile(join(folder, "data.mdb"));
  const { transaction } = file.snapshot();
  file.close();
  return transaction;
}

/** How many of the records were encoded in each turn of the event loop while something runs. */
async function encodedPerTurn(
  writes: readonly ConditionalWrite[],
  run: () => Promise<void>,
): Promise<number[]> {
  let encoded = 0;
  const note = {
    get: (): string => {
      encoded += 1;
      return "";
    },
  };
  for (const { next } of writes) Object.defineProperty(next, "note", note);
  const perTurn: number[] = [];
  let counting = true;
  const count = (before: number): void => {
    perTurn.push(encoded - before);
    if (counting) setImmediate(count, encoded);
  };
  setImmediate(count, 0);
  await run();
  counting = false;
  return perTurn;
}

async function newStore(): Promise<{ readonly folder: string; readonly store: LeaseStore }> {
  const folder = join(temporaryFolder(), "store");
  const store = closing(await openEmbeddedStore({ folder }));
  await putApplied(store, recordNamed("warm-up"));
  return { folder, store };
}

async function storeWithClock(
  monotonicMs: () => number,
  folder = join(temporaryFolder(), "store"),
): Promise<LeaseStore> {
  const env: Env = {
    monotonicMs,
    wallMs: () => realEnv.wallMs(),
    timer: (delayMs, callback, options) => realEnv.timer(delayMs, callback, options),
    defer: (callback) => realEnv.defer(callback),
    randomBytes: (length) => realEnv.randomBytes(length),
    random: () => realEnv.random(),
  };
  const store = closing(await openEmbeddedStore({ folder, env }));
  await putApplied(store, recordNamed("warm-up"));
  return store;
}

/** Every look at it takes ten milliseconds, so every commit does. */
function slowClock(): () => number {
  let looks = 0;
  return () => {
    looks += 1;
    return 1_000_000 + looks * 10;
  };
}

describe("commits", () => {
  it("calls of one turn of the event loop share one", async () => {
    const { folder, store } = await newStore();
    const before = commits(folder);
    await Promise.all(creates(64, "same-turn").map((write) => store.apply([write])));
    expect(commits(folder) - before).toBe(1);
    for (const write of creates(3, "one-by-one")) await store.apply([write]);
    expect(commits(folder) - before).toBe(4);
  });

  it("a call of some hundred writes is one, and an empty call or a read is none", async () => {
    const { folder, store } = await newStore();
    const before = commits(folder);
    await store.apply(creates(250, "call"));
    expect(commits(folder) - before).toBe(1);
    await store.apply([]);
    await store.read([keyNamed("call/1")]);
    await store.apply([{ key: keyNamed("absent"), expected: null, next: null }]);
    expect(commits(folder) - before).toBe(1);
  });

  it("of two calls of some size in one turn are two, so that one is worked on during the other", async () => {
    // The clock stands still, so a commit takes no time.
    const store = await storeWithClock(() => 1_000_000);
    const calls = [creates(30, "first"), creates(30, "second"), creates(5, "small")];
    const perTurn = await encodedPerTurn(calls.flat(), async () => {
      const replies = await Promise.all(calls.map((writes) => store.apply(writes)));
      expect(replies.flatMap(({ results }) => results).every(({ kind }) => kind === "applied")).toBe(true);
    });
    expect(perTurn.filter((count) => count > 0)).toEqual([35, 30]);
  });

  it("of two calls of some size in one turn is one where a commit takes longer than the work besides", async () => {
    const store = await storeWithClock(slowClock());
    const calls = [creates(30, "first"), creates(30, "second")];
    const perTurn = await encodedPerTurn(calls.flat(), async () => {
      await Promise.all(calls.map((writes) => store.apply(writes)));
    });
    expect(perTurn.filter((count) => count > 0)).toEqual([60]);
  });

  it("of a call that comes during a slow one is that of the calls that its answers bring", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = await storeWithClock(slowClock(), folder);
    const before = commits(folder);
    const [first = [], second = [], third = []] = ["first", "second", "third"].map((name) =>
      creates(5, name),
    );
    const answered = store.apply(first).then(() => store.apply(third));
    // Its commit begins when the turn ends.
    await new Promise((resolve) => setImmediate(resolve));
    const replies = await Promise.all([store.apply(second), answered]);
    expect(replies.flatMap(({ results }) => results).map(({ kind }) => kind)).toEqual(
      Array(10).fill("applied"),
    );
    expect(commits(folder) - before).toBe(2);
  });

  it("a write that fails keeps no call waiting for its answer", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = await storeWithClock(slowClock(), folder);
    const tooLong = { ...recordNamed("x"), key: keyNamed("n".repeat(2_000)) };
    await expect(put(store, tooLong)).rejects.toMatchObject({ outcome: "not-applied" });
    for (const name of ["a", "b"]) await putApplied(store, recordNamed(name));
  });

  it("calls of thousands of writes give the event loop its turns, and answer in order", async () => {
    const { store } = await newStore();
    const writes = creates(10_000, "bulk");
    let results: readonly WriteResult[] = [];
    const perTurn = await encodedPerTurn(writes, async () => {
      const calls = [writes.slice(0, 7_000), writes.slice(7_000)].map((part) => store.apply(part));
      results = (await Promise.all(calls)).flatMap((reply) => reply.results);
    });
    // One commit takes 500. The count may come first in one turn and last in the next: then it sees two commits'.
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(1_000);
    const versions = results.map((result) => (result.kind === "applied" ? result.version : null));
    expect(new Set(versions).size).toBe(10_000);
    const { records } = await store.read(writes.map(({ key }) => key));
    for (const [index, stored] of records.entries()) {
      expect(stored).toMatchObject({ version: versions[index], record: { generation: BigInt(index) } });
    }
  });

  it("a conflict in the middle of many parts is told at its place, with its own record", async () => {
    const { store } = await newStore();
    const writes = creates(1_700, "mixed");
    const taken = [0, 499, 500, 1_234, 1_699];
    for (const index of taken)
      await putApplied(store, recordNamed(`mixed/${index}`, { holder: `first-${index}` }));
    const { results } = await store.apply(writes);
    for (const [index, result] of results.entries()) {
      if (!taken.includes(index)) expect(result.kind).toBe("applied");
      else
        expect(result).toMatchObject({ kind: "conflict", current: { record: { holder: `first-${index}` } } });
    }
  });
});

describe("versions", () => {
  it("are never given out twice, by two stores that reserve them in small blocks", async () => {
    const folder = join(temporaryFolder(), "store");
    const open = async () => closing(await openWithSeams({ folder }, { revisionBlock: 7 }));
    const stores = [await open(), await open()];
    const replies = await Promise.all(
      stores.flatMap((store, side) =>
        [1, 3, 20, 5, 9].map((count) => store.apply(creates(count, `side-${side}/call-${count}`))),
      ),
    );
    const versions = replies.flatMap(({ results }) =>
      results.map((result) => (result.kind === "applied" ? result.version : result.kind)),
    );
    expect(new Set(versions).size).toBe(2 * 38);
    for (const store of stores) await store.close();
    const later = await open();
    expect(versions).not.toContain(await putApplied(later, recordNamed("later")));
  });

  it("of another store, or made up, are never current", async () => {
    const { store } = await newStore();
    const version = await putApplied(store, recordNamed("job"));
    for (const made of ["", "0", "-1", "x", `${version}x`, `${Number(version) + 1}`, "NaN", "Infinity"]) {
      expect([made, (await put(store, recordNamed("job"), made)).kind]).toEqual([made, "conflict"]);
    }
  });
});

describe("an impossible write", () => {
  it("leaves nothing of its call behind", async () => {
    const { folder, store } = await newStore();
    const before = commits(folder);
    const long = recordNamed("y".repeat(2_000));
    const writes = [...creates(3, "with-it"), { key: long.key, expected: null, next: long }];
    await expect(store.apply(writes)).rejects.toMatchObject({
      name: "StoreError",
      outcome: "not-applied",
      message: expect.stringContaining("2008 bytes is too long: at most 1978"),
    });
    expect((await get(store, "with-it/0")).kind).toBe("absent");
    expect(commits(folder)).toBe(before);
  });

  it("on a full disk is refused before the database sees it, reads and deletes go on, and writes once there is room", async () => {
    const folder = join(temporaryFolder(), "store");
    let left = 2 ** 29;
    const store = closing(await openWithSeams({ folder }, { spaceLeft: () => left }));
    const version = await putApplied(store, recordNamed("before"));
    const before = commits(folder);
    left = 2 ** 20;
    await expect(put(store, recordNamed("full"))).rejects.toMatchObject({
      kind: "full",
      outcome: "not-applied",
      message: expect.stringContaining("free some and try again"),
    });
    expect(commits(folder)).toBe(before);
    expect((await get(store, "full")).kind).toBe("absent");
    const { results } = await store.apply([{ key: keyNamed("before"), expected: version, next: null }]);
    expect(results).toEqual([{ kind: "applied", version: null }]);
    left = 2 ** 29;
    await putApplied(store, recordNamed("full"));
  });

  it("for lack of room is refused whole, loses nothing, ends nothing, and deletes still work", async () => {
    const folder = join(temporaryFolder(), "store");
    const child = new Child("filler.mjs", [folder], { fileBlocks: 4_096 });
    const { code, signal } = await child.ended;
    expect([code, signal, child.lines.length]).toEqual([0, null, 4]);
    const [many, one, count, deleted] = child.lines.map((line) => JSON.parse(line));
    for (const refusal of [many, one]) {
      expect(refusal.outcome).toBe("not-applied");
      // A limit of the process is no lack of space on the disk, and looks like a failing disk.
      expect(["full", "internal"]).toContain(refusal.kind);
    }
    expect(count.acknowledged).toBeGreaterThan(500);
    expect(count.there).toBe(count.acknowledged);
    expect(deleted).toEqual({ deleted: "applied" });
  });
});

describe("a failed commit", () => {
  const cases = [
    ["no space", 28, "full", /no space left .*: free some and try again/],
    ["a quota", 122, "full", /no space left/],
    ["a limit of the file's size", 27, "full", /no space left/],
    ["a map that cannot grow", -30_792, "full", /no space left/],
    ["a failing disk", 5, "internal", /could not write \(because\): check the disk/],
    ["anything else", undefined, "internal", /could not write \(because\)/],
  ] as const;

  it("is explained by its cause, in one line", async () => {
    const folder = join(temporaryFolder(), "store");
    const databases = openDatabases(await loadLmdb(), folder);
    for (const [what, code, kind, message] of cases) {
      const commitError = Promise.reject(Object.assign(new Error("because"), { code }));
      const error = await commitFailure({ commitError }, databases, realEnv, folder);
      expect([what, error.kind, error.outcome]).toEqual([what, kind, "not-applied"]);
      expect(error.message).toMatch(message);
    }
    await databases.root.close();
    // When not even a read works any more, nobody knows.
    const error = await commitFailure(new Error("because"), databases, realEnv, folder);
    expect([error.kind, error.outcome]).toEqual(["internal", "unknown"]);
    expect(error.message).toMatch(/check the disk, then open the store again/);
  });
});

describe("listing", () => {
  it("goes by the bytes of UTF-8, and pages fit together beyond the basic plane, too", async () => {
    const { store } = await newStore();
    const names = ["z", "\u{ffe5}", "\u{1f98a}", "\u{e9}", "z\u{1f98a}", "z\u{ffe5}"];
    for (const name of names) await putApplied(store, recordNamed(`list/${name}`));
    const listed: string[] = [];
    let after: string | undefined;
    do {
      const page = await store.list({
        ...{ tenant: "default", prefix: "list/", limit: 1 },
        ...(after === undefined ? {} : { after }),
      });
      listed.push(...page.records.map(({ key }) => key.name.slice("list/".length)));
      after = page.next ?? undefined;
    } while (after !== undefined);
    expect(listed).toEqual(names.sort((a, b) => Buffer.from(a).compare(Buffer.from(b))));
  });

  it("with a filter that fits few records finds them behind thousands of others", async () => {
    const { store } = await newStore();
    await store.apply(creates(2_500, "haystack"));
    await putApplied(store, recordNamed("haystack/zz", { holder: "needle" }));
    const page = await store.list({ tenant: "default", prefix: "haystack", holder: "needle", limit: 5 });
    expect([page.records.map(({ key }) => key.name), page.next]).toEqual([["haystack/zz"], null]);
  });

  it("begins at the prefix when the cursor lies before it", async () => {
    const { store } = await newStore();
    await store.apply(creates(3, "b"));
    const page = await store.list({ tenant: "default", prefix: "b/", after: "a", limit: 10 });
    expect(page.records).toHaveLength(3);
  });
});

describe("closing", () => {
  it("waits for what is under way, and what was acknowledged is there when it is opened again", async () => {
    const { folder, store } = await newStore();
    const calls = [store.apply(creates(3_000, "late")), store.apply(creates(1, "single"))];
    await store.close();
    const settled = await Promise.all(calls);
    expect(settled.flatMap(({ results }) => results).every(({ kind }) => kind === "applied")).toBe(true);
    const again = closing(await openEmbeddedStore({ folder }));
    expect((await found(again, "late/2999")).record.generation).toBe(2_999n);
  });
});

describe("members that fell silent", () => {
  it("are swept up by whoever opens the store ten minutes later, and a living one comes back", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const open = async () =>
      closing(await openWithSeams({ folder, env }, { readBoot: () => ({ id: "id:test", aheadMs: 0 }) }));
    const first = await open();
    await putApplied(first, recordNamed("a"));
    await env.advance(600_001);
    await open();
    const looking = openDatabases(await loadLmdb(), folder);
    expect(readMembers(looking)).toEqual([]);
    await putApplied(first, recordNamed("b"));
    looking.root.resetReadTxn();
    expect(readMembers(looking)).toMatchObject([{ epoch: 1, markMs: first.now() }]);
    await looking.root.close();
  });
});

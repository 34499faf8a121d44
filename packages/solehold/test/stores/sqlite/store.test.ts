/** What the embedded store does beyond the kit of all stores. */
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ConditionalWrite, LeaseStore } from "../../../src/store/index.ts";
import { storeFailure } from "../../../src/stores/sqlite/failure.ts";
import { checkEmbeddedFolder, openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { LockHolder, sqlite } from "./damage.ts";
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

async function newStore(): Promise<{ readonly folder: string; readonly store: LeaseStore }> {
  const folder = join(temporaryFolder(), "store");
  return { folder, store: closing(await openEmbeddedStore({ folder })) };
}

/** How many commits the folder has seen. */
function commits(folder: string): number {
  return Number(sqlite(folder, "SELECT count(*) FROM commits"));
}

describe("commits", () => {
  it("calls that come while a commit is under way share the next one", async () => {
    const { folder, store } = await newStore();
    const lock = await LockHolder.on(folder);
    const calls = creates(64, "together").map((write) => store.apply([write]));
    await get(store, "nothing");
    await lock.release();
    const replies = await Promise.all(calls);
    expect(replies.every(({ results }) => results[0]?.kind === "applied")).toBe(true);
    // The first call may have set out alone, and a few of them after it.
    expect(commits(folder)).toBeLessThan(10);
  });

  it("a call is one, and an empty call, a refused one or a read is none", async () => {
    const { folder, store } = await newStore();
    const before = commits(folder);
    await store.apply(creates(250, "call"));
    expect(commits(folder) - before).toBe(1);
    await store.apply([]);
    await store.read([keyNamed("call/1")]);
    await store.apply(creates(2, "call"));
    await store.apply([{ key: keyNamed("absent"), expected: null, next: null }]);
    expect(commits(folder) - before).toBe(1);
  });

  it("of as many writes as a call takes are answered in order, each with a version of its own", async () => {
    const { store } = await newStore();
    const writes = creates(store.capabilities.maxBatch, "bulk");
    const calls = [writes.slice(0, 300), writes.slice(300)].map((part) => store.apply(part));
    const results = (await Promise.all(calls)).flatMap((reply) => reply.results);
    const versions = results.map((result) => (result.kind === "applied" ? result.version : null));
    expect(new Set(versions).size).toBe(writes.length);
    const { records } = await store.read(writes.map(({ key }) => key));
    for (const [index, stored] of records.entries())
      expect(stored).toMatchObject({ version: versions[index], record: { generation: BigInt(index) } });
  });

  it("a conflict among many writes is reported at its place, with its own record", async () => {
    const { store } = await newStore();
    const taken = [0, 499, 500, 699];
    for (const index of taken)
      await putApplied(store, recordNamed(`mixed/${index}`, { holder: `first-${index}` }));
    const { results } = await store.apply(creates(700, "mixed"));
    for (const [index, result] of results.entries()) {
      if (!taken.includes(index)) expect(result.kind).toBe("applied");
      else
        expect(result).toMatchObject({ kind: "conflict", current: { record: { holder: `first-${index}` } } });
    }
  });

  it("keep the number and the sum of all records right over creates, updates and deletes by two stores", async () => {
    const folder = join(temporaryFolder(), "store");
    const stores = [await openEmbeddedStore({ folder }), await openEmbeddedStore({ folder })];
    stores.forEach(closing);
    await Promise.all(
      stores.map(async (store, side) => {
        for (let round = 0; round < 20; round += 1) {
          const name = `job/${(round * 7 + side) % 5}`;
          const stored = await get(store, name);
          const expected = stored.kind === "found" ? stored.version : null;
          const next = round % 3 === 2 ? null : recordNamed(name);
          await store.apply([{ key: keyNamed(name), expected, next }]);
        }
      }),
    );
    expect(await checkEmbeddedFolder(folder)).toMatchObject({ corrupt: 0 });
  });
});

describe("versions", () => {
  it("are never given out twice, by two stores and a later one", async () => {
    const folder = join(temporaryFolder(), "store");
    const stores = [await openEmbeddedStore({ folder }), await openEmbeddedStore({ folder })];
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
    const later = closing(await openEmbeddedStore({ folder }));
    expect(versions).not.toContain(await putApplied(later, recordNamed("later")));
  });

  it("of another store, or made up, are never current", async () => {
    const { store } = await newStore();
    const version = await putApplied(store, recordNamed("job"));
    const made = ["", "0", "-1", "x", `${version}x`, ` ${version}`, `${version}.0`, `${Number(version) + 1}`];
    for (const each of [...made, "NaN", "Infinity", "99999999999999999999"])
      expect([each, (await put(store, recordNamed("job"), each)).kind]).toEqual([each, "conflict"]);
  });
});

describe("failures", () => {
  const cases = [
    ["no space", 13, "full", "not-applied", /no space left .*: free some and try again/],
    ["no space for the index", 4_874, "full", "not-applied", /no space left/],
    ["a lock that is not given up", 5, "timeout", "not-applied", /write lock .*continue or end it/],
    ["a read-only folder", 8, "config", "not-applied", /read-only: make the folder and its files writable/],
    ["a failing disk", 778, "internal", "unknown", /failed \(because\): check it/],
    ["anything else", null, "internal", "unknown", /failed \(because\): open it again/],
  ] as const;

  it("of a commit say what to do, in one line, and what may have happened", () => {
    for (const [what, code, kind, outcome, message] of cases) {
      const error = storeFailure({ code, message: "because", at: "commit" }, "folder");
      expect([what, error.kind, error.outcome]).toEqual([what, kind, outcome]);
      expect(error.message).toMatch(message);
      expect(storeFailure({ code, message: "because", at: "before" }, "folder").outcome).toBe("not-applied");
    }
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
      const page = await store.list!({
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
    for (const part of [1, 2, 3]) await store.apply(creates(900, `haystack/${part}`));
    await putApplied(store, recordNamed("haystack/zz", { holder: "needle" }));
    const page = await store.list!({ tenant: "default", prefix: "haystack", holder: "needle", limit: 5 });
    expect([page.records.map(({ key }) => key.name), page.next]).toEqual([["haystack/zz"], null]);
  });

  it("begins at the prefix when the cursor lies before it", async () => {
    const { store } = await newStore();
    await store.apply(creates(3, "b"));
    const page = await store.list!({ tenant: "default", prefix: "b/", after: "a", limit: 10 });
    expect(page.records).toHaveLength(3);
  });
});

describe("a person with the sqlite3 tool", () => {
  it("reads the leases in a view, with their instants, whatever their names are", async () => {
    const { folder, store } = await newStore();
    const name = `it's "quoted" \\ back {brace} \u{1f98a}`;
    await putApplied(
      store,
      recordNamed(name, { holder: "a\\b", generation: 2n ** 64n - 1n, note: 'say "hi"' }),
    );
    await putApplied(store, recordNamed("over", { state: "released", endedAtMs: 1_750_000_000_123 }));
    const rows = JSON.parse(sqlite(folder, ".mode json\nSELECT * FROM leases ORDER BY name"));
    expect(rows).toEqual([
      expect.objectContaining({ tenant: "default", name, state: "held", holder: "a\\b", note: 'say "hi"' }),
      expect.objectContaining({ name: "over", state: "released", ended: "2025-06-15T15:06:40.123Z" }),
    ]);
    expect(rows[0]).toMatchObject({
      expires: "2025-06-15T15:07:10.000Z",
      generation: "18446744073709551615",
      ttl_ms: 30_000,
      ended: null,
    });
  });
});

describe("closing", () => {
  it("waits for what is under way, and what was acknowledged is there when it is opened again", async () => {
    const { folder, store } = await newStore();
    const calls = [store.apply(creates(1_000, "late")), store.apply(creates(1, "single"))];
    await store.close();
    const settled = await Promise.all(calls);
    expect(settled.flatMap(({ results }) => results).every(({ kind }) => kind === "applied")).toBe(true);
    const again = closing(await openEmbeddedStore({ folder }));
    expect((await found(again, "late/999")).record.generation).toBe(999n);
  });

  it("leaves no file open and no write-ahead file behind, however often it is done", async () => {
    const folder = join(temporaryFolder(), "store");
    for (let round = 0; round < 20; round += 1) {
      const store = await openEmbeddedStore({ folder });
      await putApplied(store, recordNamed(`round/${round}`));
      await store.close();
    }
    const open = readdirSync("/proc/self/fd").map((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`);
      } catch {
        return "";
      }
    });
    expect(open.filter((path) => path.startsWith(folder))).toEqual([]);
    expect(readdirSync(folder).sort()).toEqual(["leases.db", "solehold.json"]);
  });

  it("may be forgotten: a process that has nothing else to do ends, with its write done", async () => {
    const { folder, store } = await newStore();
    const child = new Child("one-write.mjs", [folder]);
    await child.line((line) => line === "open");
    child.send("write");
    expect([await child.ended, child.lines]).toEqual([{ code: 0, signal: null }, ["open", "applied"]]);
    expect((await get(store, "late")).kind).toBe("found");
  });
});

describe("close", () => {
  it("keeps the process alive until it is done, also while a watcher looks", async () => {
    const child = new Child("closer.mjs", [join(temporaryFolder(), "store")]);
    expect(await child.ended).toEqual({ code: 0, signal: null });
    expect(child.lines).toEqual(["closed"]);
  });
});

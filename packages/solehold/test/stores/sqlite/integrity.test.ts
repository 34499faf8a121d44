/**
 * Damaged files. A store whose files have one flipped bit is refused, or says of a record that it is corrupt, or is as it
 * was; it never shows another record than was written, and never hides one. `SOLEHOLD_EFFORT=full` for 600 files of each kind.
 */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ManualEnv, realEnv } from "../../../src/env/index.ts";
import { StoreError } from "../../../src/store/index.ts";
import { checkEmbeddedFolder, openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { openWithSeams } from "../../../src/stores/sqlite/open.ts";
import { sqlite } from "./damage.ts";
import {
  Child,
  closing,
  FULL_EFFORT,
  found,
  get,
  keyNamed,
  put,
  putApplied,
  recordNamed,
  temporaryFolder,
} from "./fixtures.ts";

const RECORDS = 300;
const FLIPS = FULL_EFFORT ? 600 : 40;
const AT_ONCE = 4;

type Expected = ReadonlyMap<string, { readonly version: string; readonly generation: string }>;

interface Sound {
  readonly folder: string;
  /** By name: what must be there, and nothing else. */
  readonly expected: Expected;
}

/** As a process leaves it: "closed", or "killed" with its last commits in the write-ahead file. */
async function soundFolder(end: "closed" | "killed"): Promise<Sound> {
  const folder = join(temporaryFolder(), "sound");
  const child = new Child("fill.mjs", [folder, String(RECORDS)]);
  const line = await child.line(() => true);
  if (end === "closed") child.process.stdin!.end();
  else await child.kill();
  await child.ended;
  const files = readdirSync(folder).sort();
  const beside = end === "closed" ? [] : ["leases.db-shm", "leases.db-wal"];
  expect(files).toEqual(["leases.db", ...beside, "solehold.json"]);
  return {
    folder,
    expected: new Map(JSON.parse(line) as [string, { version: string; generation: string }][]),
  };
}

/** How it ends when a copy with this damage is opened and all of it read. "silent" is what must never be. */
async function probe(sound: Sound, copy: string, damage: (folder: string) => void): Promise<string> {
  mkdirSync(copy);
  for (const name of readdirSync(sound.folder)) copyFileSync(join(sound.folder, name), join(copy, name));
  damage(copy);
  const before = bytesOf(copy);
  try {
    const store = await openEmbeddedStore({ folder: copy });
    try {
      return await readAll(store, sound.expected);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof StoreError) || error.message.includes("\n")) throw error;
    if (error.kind === "config") expect(bytesOf(copy), error.message).toMatchObject(before);
    return error.kind === "config" ? "refused" : "failed";
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** By the files' names. The index beside the write-ahead file is made anew by whoever comes. */
function bytesOf(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter((name) => !name.endsWith("-shm"));
  const digest = (name: string) =>
    createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
  return Object.fromEntries(names.map((name) => [name, digest(name)]));
}

async function readAll(
  store: Awaited<ReturnType<typeof openEmbeddedStore>>,
  expected: Expected,
): Promise<string> {
  const names = Array.from({ length: RECORDS }, (_, index) => `job/${index}`);
  const { records } = await store.read(names.map(keyNamed));
  let corrupt = 0;
  for (const [index, name] of names.entries()) {
    const [stored, wanted] = [records[index]!, expected.get(name)];
    if (stored.kind === "corrupt") corrupt += 1;
    else if (stored.kind === "absent" ? wanted !== undefined : wanted === undefined) return `silent: ${name}`;
    else if (stored.kind === "found" && stored.version !== wanted?.version)
      return `silent: version of ${name}`;
    else if (stored.kind === "found" && String(stored.record.generation) !== wanted?.generation)
      return `silent: record of ${name}`;
  }
  const page = await store.list({ tenant: "default", prefix: "", limit: 1_000 });
  if (page.records.length + page.corrupt.length !== expected.size || page.corrupt.length !== corrupt)
    return "silent: the listing";
  return corrupt > 0 ? "corrupt" : "as it was";
}

async function tally(
  sound: Sound,
  damages: readonly ((folder: string) => void)[],
): Promise<Record<string, number>> {
  const ends: Record<string, number> = {};
  const queue = [...damages.entries()];
  const lane = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, damage] = next;
      const end = await probe(sound, `${sound.folder}-${index}`, damage);
      expect(end, `damage ${index}`).not.toMatch(/silent/);
      ends[end] = (ends[end] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return ends;
}

function flips(sound: Sound, file: string, seed: number): ((folder: string) => void)[] {
  const bytes = readFileSync(join(sound.folder, file));
  const random = new ManualEnv({ seed });
  return Array.from({ length: FLIPS }, () => {
    const [at, bit] = [Math.floor(random.random() * bytes.length), Math.floor(random.random() * 8)];
    return (folder: string) => {
      const damaged = Buffer.from(bytes);
      damaged[at]! ^= 1 << bit;
      writeFileSync(join(folder, file), damaged);
    };
  });
}

describe("one flipped bit", () => {
  const cases = [
    { file: "leases.db", end: "closed", what: "in the database" },
    { file: "leases.db", end: "killed", what: "in the database, with a write-ahead file" },
    { file: "leases.db-wal", end: "killed", what: "in the write-ahead file" },
    { file: "solehold.json", end: "killed", what: "in the marker" },
  ] as const;

  it.each(cases)(
    "$what hides no record and changes none without a word",
    async ({ file, end, what }) => {
      const sound = await soundFolder(end);
      const ends = await tally(sound, flips(sound, file, 20_260_101));
      console.info(`${FLIPS} files with one flipped bit ${what}: ${JSON.stringify(ends)}`);
      expect((ends.refused ?? 0) + (ends.corrupt ?? 0)).toBeGreaterThan(0);
    },
    1_200_000,
  );
});

describe("other damage", () => {
  it("a database that was cut at any length is refused, or nothing was lost", async () => {
    const sound = await soundFolder("closed");
    const { length } = readFileSync(join(sound.folder, "leases.db"));
    const lengths = [0, 1, 100, 4_095, 4_096, 8_192, length - 4_096, length - 1];
    for (let cut = 20_000; cut < length; cut += 20_000) lengths.push(cut);
    const ends = await tally(
      sound,
      lengths.map((bytes) => (folder) => truncateSync(join(folder, "leases.db"), bytes)),
    );
    expect(Object.keys(ends).sort()).toEqual(["as it was", "refused"]);
    expect(ends.refused).toBeGreaterThan(lengths.length - 3);
  });

  it("a write-ahead file that was cut or lost is noticed: acknowledged changes are missing", async () => {
    const sound = await soundFolder("killed");
    const wal = (folder: string) => join(folder, "leases.db-wal");
    const { length } = readFileSync(wal(sound.folder));
    const cuts = [0, 31, 5_000, Math.floor(length / 2), length - 1];
    const ends = await tally(sound, [
      ...cuts.map((bytes) => (folder: string) => truncateSync(wal(folder), bytes)),
      (folder) => rmSync(wal(folder)),
    ]);
    expect(ends).toEqual({ refused: cuts.length + 1 });
  });

  it("an older copy of the database is refused, and taken when the operator deletes the marker", async () => {
    const folder = join(temporaryFolder(), "store");
    const first = await openEmbeddedStore({ folder });
    await putApplied(first, recordNamed("old"));
    await first.close();
    copyFileSync(join(folder, "leases.db"), `${folder}.backup`);
    const second = await openEmbeddedStore({ folder });
    await putApplied(second, recordNamed("new"));
    await second.close();
    copyFileSync(`${folder}.backup`, join(folder, "leases.db"));
    await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(
        /ends with change \d+, but change \d+ was acknowledged.*or delete .*solehold\.json/,
      ),
    });
    rmSync(join(folder, "solehold.json"));
    const third = closing(await openEmbeddedStore({ folder }));
    expect([(await get(third, "old")).kind, (await get(third, "new")).kind]).toEqual(["found", "absent"]);
  });

  it.each([
    ["a row that is gone", "DELETE FROM records WHERE name = 'job/7'", /has 2 records, and there were 3/],
    [
      "another version",
      "UPDATE records SET version = version + 50 WHERE name = 'job/7'",
      /not those that were/,
    ],
    [
      "a doubled row",
      "INSERT INTO records SELECT tenant, 'job/8', version, record, digest FROM records WHERE name = 'job/7'",
      /has 4 records, and there were 3/,
    ],
    ["a changed name", "UPDATE records SET name = 'job/6' WHERE name = 'job/7'", /not those that were/],
    ["a changed sum", "UPDATE commits SET sum = sum + 1", /note of its last commit/],
    ["another clock", "UPDATE meta SET value = replace(value, '1', '2')", /its clock/],
    ["no note of any commit", "DELETE FROM commits", /note of its last commit/],
    ["another table", "CREATE TABLE guests (name)", /its tables are not/],
  ])("%s is refused by name, and the whole database left as it is", async (_what, sql, problem) => {
    const folder = join(temporaryFolder(), "store");
    const store = await openEmbeddedStore({ folder });
    for (const name of ["job/1", "job/7", "job/9"]) await putApplied(store, recordNamed(name));
    await store.close();
    sqlite(folder, sql);
    const before = bytesOf(folder);
    await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({ kind: "config", message: problem });
    expect(bytesOf(folder)).toMatchObject(before);
    await expect(checkEmbeddedFolder(folder)).rejects.toMatchObject({ kind: "config", message: problem });
  });
});

describe("a record that was damaged", () => {
  it("can be replaced on its version, and then the store is sound again", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("job"));
    sqlite(folder, "UPDATE records SET record = 'x'");
    const stored = await get(store, "job");
    if (stored.kind !== "corrupt") throw new Error(`it is ${stored.kind}`);
    expect(await checkEmbeddedFolder(folder)).toMatchObject({ records: 1, corrupt: 1 });
    expect((await put(store, recordNamed("job"), "12345")).kind).toBe("conflict");
    await putApplied(store, recordNamed("job", { generation: 2n }), stored.version);
    expect((await found(store, "job")).record.generation).toBe(2n);
    expect(await checkEmbeddedFolder(folder)).toMatchObject({ records: 1, corrupt: 0 });
  });
});

describe("a large database", () => {
  it("is opened at once and read completely in the background; if it is damaged nobody believes it any more", async () => {
    const folder = join(temporaryFolder(), "store");
    const first = await openEmbeddedStore({ folder });
    for (const name of ["a", "b", "c"]) await putApplied(first, recordNamed(name));
    await first.close();
    const env = new ManualEnv({ monotonicMs: realEnv.monotonicMs(), wallMs: realEnv.wallMs() });
    sqlite(folder, "DELETE FROM records WHERE name = 'b'");
    const store = closing(await openWithSeams({ folder, env }, { checkUpToBytes: 0 }));
    expect((await get(store, "a")).kind).toBe("found");
    await env.advance(5_000);
    await expect(untilItFails(() => get(store, "a"))).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/is damaged \(it has 2 records, and there were 3\): restore it/),
    });
    await expect(put(store, recordNamed("d"))).rejects.toMatchObject({ outcome: "not-applied" });
  });
});

async function untilItFails(call: () => Promise<unknown>): Promise<never> {
  for (;;) await call();
}

describe("the thorough look", () => {
  it("passes while other processes write", async () => {
    const folder = join(temporaryFolder(), "store");
    const writer = new Child("writer.mjs", [folder, "busy"]);
    await writer.lineCount(20);
    for (let round = 0; round < 5; round += 1)
      expect(await checkEmbeddedFolder(folder)).toMatchObject({ records: 4, corrupt: 0 });
  });

  it("of a folder without a store says so, and makes none", async () => {
    const folder = temporaryFolder();
    await expect(checkEmbeddedFolder(folder)).rejects.toThrow(/holds no embedded store/);
    await expect(checkEmbeddedFolder(join(folder, "none"))).rejects.toThrow(/its folder is gone/);
    expect(readdirSync(folder)).toEqual([]);
  });
});

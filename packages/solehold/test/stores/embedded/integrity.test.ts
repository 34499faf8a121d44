/**
 * Damaged data files. LMDB ends the process with a signal when it meets one, so every case runs in a child
 * process, and a child that dies is a failure: the store has to see the damage first.
 */
import { copyFileSync, cpSync, readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ManualEnv, realEnv } from "../../../src/env/index.ts";
import { levelFor } from "../../../src/stores/embedded/checked-mark.ts";
import {
  BRANCH_PAGE,
  DamagedFile,
  DataFile,
  PAGE_HEADER_BYTES,
} from "../../../src/stores/embedded/data-file.ts";
import { checkEmbeddedFolder, openEmbeddedStore } from "../../../src/stores/embedded/index.ts";
import { checkDataFile } from "../../../src/stores/embedded/integrity.ts";
import { openWithSeams } from "../../../src/stores/embedded/open.ts";
import { everywhere } from "./damage.ts";
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

const RECORDS = 300;
const PAGE = 4096;

/** Small records, records that fill pages of their own, and some churn, so that there are free pages. */
async function filledFolder(root: string): Promise<string> {
  const folder = join(root, "sound");
  const store = await openEmbeddedStore({ folder });
  const records = Array.from({ length: RECORDS }, (_, index) =>
    recordNamed(`job/${index}`, {
      generation: BigInt(index + 1),
      note: "x".repeat(index % 50 === 0 ? 400 : index % 7),
      idempotency:
        index % 60 === 0
          ? { op: "acquire", keyHash: "k", fingerprint: "f", sealedToken: "s".repeat(2_500) }
          : null,
    }),
  );
  for (let round = 0; round < 3; round += 1) {
    const { records: stored } = await store.read(records.map(({ key }) => key));
    await store.apply(
      records.map((next, index) => {
        const current = stored[index]!;
        return { key: next.key, expected: current.kind === "found" ? current.version : null, next };
      }),
    );
  }
  await store.close();
  return folder;
}

/** Copies of the sound folder, each damaged in its own way, opened one after the other by a child process. */
async function probe(sound: string, damages: readonly ((path: string) => void)[]): Promise<string[]> {
  const folders = damages.map((damage, index) => {
    const folder = `${sound}-${index}`;
    cpSync(sound, folder, { recursive: true });
    damage(join(folder, "data.mdb"));
    return folder;
  });
  const child = new Child("probe.mjs", [String(RECORDS), ...folders]);
  expect([await child.ended, child.lines.at(-1)]).toEqual([
    { code: 0, signal: null },
    expect.stringContaining(`end ${folders.at(-1)}`),
  ]);
  return child.lines
    .filter((line) => line.startsWith("end"))
    .map((line) => line.split(" ").slice(2).join(" "));
}

const ALL_FOUND = `opened ${JSON.stringify({ found: RECORDS })}`;

describe("a data file that was cut", () => {
  it("at any length is refused, or nothing was lost: LMDB never sees it", async () => {
    const sound = await filledFolder(temporaryFolder());
    const { length } = readFileSync(join(sound, "data.mdb"));
    const lengths = [0, 1, 100, 175, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE - 1, 2 * PAGE];
    for (let cut = 3 * PAGE; cut < length; cut += 2 * PAGE) lengths.push(cut, cut + 1_000);
    lengths.push(length - PAGE, length - 1);
    const ends = await probe(
      sound,
      lengths.map((bytes) => (path) => truncateSync(path, bytes)),
    );
    for (const [index, end] of ends.entries())
      expect([lengths[index], end]).toEqual([lengths[index], expect.toBeOneOf(["refused", ALL_FOUND])]);
    expect(ends.filter((end) => end === "refused").length).toBeGreaterThan(lengths.length / 2);
  }, 120_000);
});

describe("a data file with damaged bytes", () => {
  it("is refused, or every record comes back right or is reported corrupt, and nobody crashes", async () => {
    const sound = await filledFolder(temporaryFolder());
    const bytes = readFileSync(join(sound, "data.mdb"));
    const random = new ManualEnv({ seed: 20_260_101 });
    const damages = Array.from({ length: 120 }, (_, index) => (path: string) => {
      const damaged = Buffer.from(bytes);
      const size = [1, 4, 64][index % 3]!;
      const page = Math.floor(random.random() * (damaged.length / PAGE));
      // Half of them where a page says what it is and where its nodes are.
      const within = Math.floor(random.random() * (index % 2 === 0 ? PAGE - size : 120));
      const at = page * PAGE + within;
      damaged.set(random.randomBytes(size), at);
      writeFileSync(path, damaged);
    });
    const ends = await probe(sound, damages);
    for (const end of ends) expect(end).toMatch(/^refused$|^opened \{("(found|corrupt)":\d+,?)+\}$/);
    expect(ends.filter((end) => end === "refused").length).toBeGreaterThan(5);
    expect(ends.filter((end) => end.includes("corrupt")).length).toBeGreaterThan(5);
  }, 120_000);

  it("in the header of each page in use is refused", async () => {
    const sound = await filledFolder(temporaryFolder());
    const path = join(sound, "data.mdb");
    const bytes = readFileSync(path);
    const report = await checkDataFile(path, "full", realEnv);
    let refused = 0;
    for (let page = 0; page < bytes.length / PAGE; page += 1) {
      const damaged = Buffer.from(bytes);
      damaged.fill(0xee, page * PAGE + 16, page * PAGE + 24);
      writeFileSync(path, damaged);
      try {
        await checkDataFile(path, "full", realEnv);
      } catch (error) {
        expect(error).toBeInstanceOf(DamagedFile);
        refused += 1;
      }
    }
    expect(refused).toBe(report?.pagesInUse);
  });

  it("is refused when a key was damaged: its record would seem never to have been", async () => {
    const root = temporaryFolder();
    const sound = await filledFolder(root);
    const path = join(sound, "data.mdb");
    const bytes = readFileSync(path);
    // The name as it stands in the value follows a line break; in the key it follows the tenant's slash.
    everywhere(bytes, "default/job/123", (at) => bytes.write("4", at + "default/job/123".length - 1));
    writeFileSync(path, bytes);
    await expect(openEmbeddedStore({ folder: sound })).rejects.toMatchObject({ kind: "config" });
  });

  it.each(["", "by hand"])(
    "is refused when the key of a record with the note '%s' was damaged",
    async (note) => {
      const folder = join(temporaryFolder(), "store");
      const first = await openEmbeddedStore({ folder });
      await putApplied(first, recordNamed("job/1", { note }));
      await first.close();
      const path = join(folder, "data.mdb");
      const bytes = readFileSync(path);
      everywhere(bytes, "default/job/1", (at) => bytes.write("2", at + "default/job/1".length - 1));
      writeFileSync(path, bytes);
      await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({
        kind: "config",
        message: expect.stringMatching(/the record of .*"job\/1".* lies under the key .*"job\/2"/),
      });
    },
  );

  it("is refused when a key and its value were overwritten with zeros", async () => {
    const folder = join(temporaryFolder(), "store");
    const first = await openEmbeddedStore({ folder });
    await putApplied(first, recordNamed("job/1"));
    await first.close();
    const path = join(folder, "data.mdb");
    const bytes = readFileSync(path);
    everywhere(bytes, "default/job/1", (at) => bytes.fill(0, at + 4, at + 40));
    writeFileSync(path, bytes);
    await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringContaining("which cannot be one"),
    });
  });

  it.each([
    { what: "higher", byte: 0x7a },
    { what: "lower", byte: 0x21 },
  ])("is refused when a key above the records became $what: some would not be found", async ({ byte }) => {
    const folder = await filledFolder(temporaryFolder());
    const path = join(folder, "data.mdb");
    const bytes = readFileSync(path);
    let damaged = 0;
    for (let page = 2 * PAGE; page < bytes.length; page += PAGE) {
      // Branches: the last node's key loses its last character.
      if (bytes.readUInt16LE(page + 18) !== BRANCH_PAGE) continue;
      const last = bytes.readUInt16LE(page + 20) - 2;
      const node = page + PAGE_HEADER_BYTES + bytes.readUInt16LE(page + PAGE_HEADER_BYTES + last);
      bytes[node + 8 + bytes.readUInt16LE(node + 6) - 1] = byte;
      damaged += 1;
    }
    expect(damaged).toBeGreaterThan(0);
    writeFileSync(path, bytes);
    await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringMatching(/page \d+ is damaged/),
    });
  });

  it.each([
    { what: "lost its length", damage: (node: Buffer) => node.writeUInt16LE(0, 6) },
    { what: "is another number", damage: (node: Buffer) => node.fill(0, 8, 16) },
  ])("is refused when a key among the free pages $what: LMDB would end the process", async ({ damage }) => {
    const folder = await filledFolder(temporaryFolder());
    const path = join(folder, "data.mdb");
    const file = new DataFile(path);
    const { free, pageSize } = file.snapshot();
    file.close();
    expect(free.depth).toBe(1);
    const bytes = readFileSync(path);
    const page = bytes.subarray(free.page! * pageSize, (free.page! + 1) * pageSize);
    damage(page.subarray(PAGE_HEADER_BYTES + page.readUInt16LE(PAGE_HEADER_BYTES)));
    writeFileSync(path, bytes);
    await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({
      kind: "config",
      message: expect.stringContaining(`page ${free.page} is damaged`),
    });
  });

  it("is refused when a digit of the store's own state was damaged: it would be believed", async () => {
    const sound = await filledFolder(temporaryFolder());
    const path = join(sound, "data.mdb");
    const bytes = readFileSync(path);
    for (const text of ['"offsetMs":', '"startMs":']) {
      const damaged = Buffer.from(bytes);
      everywhere(damaged, text, (at) => {
        const digit = at + text.length + 2;
        damaged.write(damaged.toString("latin1", digit, digit + 1) === "0" ? "1" : "0", digit);
      });
      writeFileSync(path, damaged);
      await expect(openEmbeddedStore({ folder: sound })).rejects.toMatchObject({
        kind: "config",
        message: expect.stringMatching(/the store's own value .* is damaged\): restore it from a backup/),
      });
    }
  });

  it("is refused when a node reaches out of its page", async () => {
    const sound = await filledFolder(temporaryFolder());
    const path = join(sound, "data.mdb");
    const bytes = readFileSync(path);
    // Before each key: the size of the value (four bytes), flags (two) and the size of the key (two).
    const damages: readonly ((damaged: Buffer, node: number) => void)[] = [
      (damaged, node) => damaged.writeUInt32LE(0x7fffffff, node),
      (damaged, node) => damaged.writeUInt32LE(4_000, node),
      (damaged, node) => damaged.writeUInt16LE(0xffff, node + 6),
      (damaged, node) => damaged.writeUInt16LE(0x10, node + 4),
      (damaged, node) => damaged.writeUInt16LE(0x01, node + 4),
      (damaged, node) => damaged.writeUInt16LE(0x02, node + 4),
    ];
    for (const [index, damage] of damages.entries()) {
      const damaged = Buffer.from(bytes);
      everywhere(damaged, "default/job/123", (at) => damage(damaged, at - 8));
      writeFileSync(path, damaged);
      await expect(checkDataFile(path, "full", realEnv), `damage ${index}`).rejects.toThrow(DamagedFile);
    }
  });

  it("of another format version is refused with both versions named", async () => {
    const sound = await filledFolder(temporaryFolder());
    const path = join(sound, "data.mdb");
    const bytes = readFileSync(path);
    bytes.writeUInt32LE(1, 28);
    writeFileSync(path, bytes);
    await expect(openEmbeddedStore({ folder: sound })).rejects.toThrow(
      /its format is version 1, and lmdb 3 writes version 2/,
    );
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });
});

describe("a large data file", () => {
  it("is looked at completely once after a boot and once after it was replaced, then only quickly", async () => {
    const folder = join(temporaryFolder(), "store");
    const open = (id: string) => openWithSeams({ folder }, { readBoot: () => ({ id, aheadMs: 0 }) });
    const store = await open("id:first");
    const count = 100_000;
    for (let start = 0; start < count; start += 10_000) {
      const writes = Array.from({ length: 10_000 }, (_, index) => {
        const next = recordNamed(`job/${start + index}`, { generation: BigInt(start + index + 1) });
        return { key: next.key, expected: null, next };
      });
      const { results } = await store.apply(writes);
      expect(results.every(({ kind }) => kind === "applied")).toBe(true);
    }
    await store.close();
    const path = join(folder, "data.mdb");
    copyFileSync(path, `${path}.backup`);
    expect(levelFor(folder, "id:first")).toBe("quick");
    expect(levelFor(folder, "id:second")).toBe("full");
    expect(await checkEmbeddedFolder(folder)).toMatchObject({ level: "full", records: count });
    expect(await checkDataFile(path, "quick", realEnv)).toMatchObject({ level: "quick", records: 0 });
    const again = await open("id:second");
    expect(levelFor(folder, "id:second")).toBe("quick");
    expect((await found(again, "job/99999")).record.generation).toBe(100_000n);
    const page = await again.list({ tenant: "default", prefix: "job/5", limit: 1_000 });
    const names = Array.from({ length: count }, (_, index) => `job/${index}`);
    const expected = names.filter((name) => name.startsWith("job/5")).sort();
    expect([page.records.length, page.next]).toEqual([1_000, expected[999]]);
    await again.close();
    // Restored by copying over it, and by putting another file in its place.
    copyFileSync(`${path}.backup`, path);
    expect(levelFor(folder, "id:second")).toBe("full");
    await (await open("id:second")).close();
    expect(levelFor(folder, "id:second")).toBe("quick");
    copyFileSync(path, `${path}.restored`);
    renameSync(`${path}.restored`, path);
    expect(levelFor(folder, "id:second")).toBe("full");
  }, 120_000);

  it("that was cut is refused by the quick look, too", async () => {
    const sound = await filledFolder(temporaryFolder());
    const path = join(sound, "data.mdb");
    const { pagesInUse } = (await checkDataFile(path, "quick", realEnv))!;
    truncateSync(path, Math.floor(pagesInUse / 2) * PAGE);
    await expect(checkDataFile(path, "quick", realEnv)).rejects.toThrow(
      /it is cut: page \d+ of \d+ is not in it/,
    );
  });
});

describe("a sound data file", () => {
  it("passes the thorough check, also while it is in use", async () => {
    const sound = await filledFolder(temporaryFolder());
    expect(await checkEmbeddedFolder(sound)).toMatchObject({ level: "full", records: RECORDS });
    const store = closing(await openEmbeddedStore({ folder: sound }));
    await putApplied(store, recordNamed("one-more"));
    expect(await checkEmbeddedFolder(sound)).toMatchObject({ records: RECORDS + 1 });
  });

  it("passes on opening while another process writes without a pause", async () => {
    const folder = join(temporaryFolder(), "store");
    const writer = new Child("writer.mjs", [folder, "busy"]);
    await writer.lineCount(20);
    for (let round = 0; round < 20; round += 1) {
      const store = await openEmbeddedStore({ folder });
      expect((await get(store, "busy/1")).kind).toBe("found");
      await store.close();
    }
  });
});

describe("a damaged value", () => {
  it("whose version is no number at all can still be repaired", async () => {
    const folder = join(temporaryFolder(), "store");
    const first = await openEmbeddedStore({ folder });
    await putApplied(first, recordNamed("job"));
    await first.close();
    const path = join(folder, "data.mdb");
    const bytes = readFileSync(path);
    everywhere(bytes, "2hO 1 ", (value) => bytes.fill(0xff, value - 8, value));
    writeFileSync(path, bytes);
    const store = closing(await openEmbeddedStore({ folder }));
    const { version } = await found(store, "job");
    const repaired = recordNamed("job", { generation: 2n });
    const stale = await put(store, repaired, "12345");
    expect(stale.kind).toBe("conflict");
    await putApplied(store, repaired, version);
    expect((await found(store, "job")).record.generation).toBe(2n);
    const again = await put(store, recordNamed("job"), version);
    expect(again).toMatchObject({ kind: "conflict", current: { record: { key: keyNamed("job") } } });
  });

  it.each([
    { form: "the short form", note: "", epoch: "2hO 1 ", another: "2hO 7 ", detail: "checksum" },
    { form: "core's text", note: "by hand", epoch: "E1.", another: "E7.", detail: "epoch" },
  ])("whose epoch was damaged is corrupt, not translated by guess, in $form", async (each) => {
    const folder = join(temporaryFolder(), "store");
    const first = await openEmbeddedStore({ folder });
    await putApplied(first, recordNamed("job", { note: each.note }));
    await first.close();
    const path = join(folder, "data.mdb");
    const bytes = readFileSync(path);
    everywhere(bytes, each.epoch, (value) => bytes.write(each.another, value));
    writeFileSync(path, bytes);
    const store = closing(await openEmbeddedStore({ folder }));
    expect(await get(store, "job")).toMatchObject({
      kind: "corrupt",
      detail: expect.stringContaining(each.detail),
    });
  });
});

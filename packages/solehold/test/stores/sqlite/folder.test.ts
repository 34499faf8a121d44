/** Which folders are taken, which are refused, and that a refused one is left exactly as it was. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../../src/store/index.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { assertLocal } from "../../../src/stores/support/network-file-systems.ts";
import { sqlite } from "./damage.ts";
import { Child, closing, found, putApplied, recordNamed, temporaryFolder } from "./fixtures.ts";

const NOBODY = 65_534;

/** Everything below a path: kinds, modes and bytes. */
function contents(path: string): unknown {
  const stats = statSync(path);
  if (stats.isDirectory()) {
    // SQLite may leave its index and an empty write-ahead file beside a database that it has looked at.
    const isEmptyLog = (name: string) => name.endsWith("-wal") && statSync(join(path, name)).size === 0;
    const entries = readdirSync(path)
      .filter((name) => !name.endsWith("-shm") && !isEmptyLog(name))
      .sort();
    return [stats.mode, entries.map((name) => [name, contents(join(path, name))])];
  }
  return [stats.mode, stats.mtimeMs, readFileSync(path).toString("base64")];
}

/** That opening is refused with one line that has `advice`, and that nothing has changed. */
async function expectRefusal(folder: string, advice: RegExp, root = folder): Promise<void> {
  const before = contents(root);
  const error = await openEmbeddedStore({ folder }).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  const { kind, message, outcome } = error as StoreError;
  expect([kind, outcome]).toEqual(["config", "not-applied"]);
  expect(message).toMatch(advice);
  expect(message).not.toContain("\n");
  expect(contents(root)).toEqual(before);
}

async function filledFolder(): Promise<string> {
  const folder = join(temporaryFolder(), "store");
  const store = await openEmbeddedStore({ folder });
  await putApplied(store, recordNamed("job"));
  await store.close();
  return folder;
}

describe("a folder that is taken", () => {
  it("is made with all its parents, for the owner's eyes only", async () => {
    const folder = join(temporaryFolder(), "a", "b.c", "store");
    closing(await openEmbeddedStore({ folder }));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder))
      expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0]);
  });

  it("may be there already when it is empty, or holds only what the system put there", async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "lost+found"));
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("job"));
  });

  it("may hold the journal of a process that is making the database just now", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "leases.db"), "", { mode: 0o600 });
    writeFileSync(join(folder, "leases.db-journal"), "", { mode: 0o600 });
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("job"));
  });

  it("may be given relative to the working directory", async () => {
    const folder = await filledFolder();
    const store = closing(await openEmbeddedStore({ folder: join(folder, "..", "store") }));
    expect((await found(store, "job")).record.key.name).toBe("job");
  });

  it("is completed when the process that began to make it died", async () => {
    const folder = join(temporaryFolder(), "store");
    mkdirSync(folder);
    writeFileSync(join(folder, "leases.db"), "");
    const store = await openEmbeddedStore({ folder });
    await putApplied(store, recordNamed("job"));
    await store.close();
    rmSync(join(folder, "solehold.json"));
    const again = await openEmbeddedStore({ folder });
    await again.close();
    writeFileSync(join(folder, "solehold.json"), "");
    const third = closing(await openEmbeddedStore({ folder }));
    expect((await found(third, "job")).record.key.name).toBe("job");
    const marker = JSON.parse(readFileSync(join(folder, "solehold.json"), "utf8"));
    expect(marker).toMatchObject({ store: "solehold-embedded", format: 2 });
  });
});

describe("a folder that is refused", () => {
  it("holds other files and no store", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "thesis.txt"), "years of work");
    await expectRefusal(folder, /holds other files \('thesis.txt'\): give .* a folder of its own/);
  });

  it("holds somebody else's SQLite database of the same name, or no database at all", async () => {
    const folder = join(temporaryFolder(), "other");
    mkdirSync(folder);
    sqlite(folder, "CREATE TABLE guests (name)");
    await expectRefusal(
      folder,
      /'leases.db' is not one of this version of the embedded store: use .* another folder/,
    );
    writeFileSync(join(folder, "leases.db"), "Dear diary, ".repeat(1_000));
    await expectRefusal(folder, /leases.db' is damaged \(file is not a database\)/);
  });

  it("is a file", async () => {
    const root = temporaryFolder();
    writeFileSync(join(root, "file"), "content");
    await expectRefusal(join(root, "file"), /is not a folder/, root);
    await expectRefusal(join(root, "file", "below"), /a part of its path is not a folder/, root);
  });

  it("has lost its data: its fences must not begin anew", async () => {
    const folder = await filledFolder();
    rmSync(join(folder, "leases.db"));
    await expectRefusal(folder, /leases\.db' is missing: restore it from a backup/);
    writeFileSync(join(folder, "leases.db"), "");
    await expectRefusal(folder, /leases\.db' is damaged \(it is empty\): restore it from a backup/);
  });

  it("has a marker of something else, of another version, or a damaged one", async () => {
    const folder = await filledFolder();
    for (const text of ['{"store":"solehold-embedded","format":3}', '{"store":"another"}', "null", "{{{{"]) {
      writeFileSync(join(folder, "solehold.json"), text);
      await expectRefusal(
        folder,
        /solehold\.json' is damaged, or not a marker of this version of the embedded store: use another folder/,
      );
    }
  });

  it("has a database of another format", async () => {
    const folder = await filledFolder();
    sqlite(folder, "PRAGMA user_version = 2");
    await expectRefusal(
      folder,
      /'leases.db' is not one of this version of the embedded store: use the version that wrote it/,
    );
  });

  it("may not be read or written by this user", async () => {
    const root = temporaryFolder();
    chmodSync(root, 0o755);
    const sealed = join(root, "sealed");
    mkdirSync(sealed, { mode: 0o500 });
    const readOnlyFile = join(root, "read-only-file");
    const store = await openEmbeddedStore({ folder: readOnlyFile });
    await store.close();
    chmodSync(readOnlyFile, 0o777);
    for (const name of readdirSync(readOnlyFile)) chmodSync(join(readOnlyFile, name), 0o444);
    const before = contents(root);
    // The administrator may do everything, so the question is asked as nobody.
    const isRoot = process.getuid?.() === 0;
    const child = new Child("refusal.mjs", [sealed, join(sealed, "below"), readOnlyFile], {
      ...(isRoot ? { uid: NOBODY } : {}),
    });
    expect([await child.ended, child.errors]).toEqual([{ code: 0, signal: null }, ""]);
    const refusals = child.lines.map((line) => JSON.parse(line));
    expect(refusals).toHaveLength(3);
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({
        kind: "config",
        message: expect.stringMatching(
          /no permission to read and write: run as its owner or change its mode/,
        ),
      });
    }
    expect(contents(root)).toEqual(before);
  });

  it.skipIf(process.platform !== "linux")("lies where none can be made", async () => {
    for (const folder of ["/proc/solehold", "/proc/solehold/below"])
      await expect(openEmbeddedStore({ folder })).rejects.toMatchObject({
        kind: "config",
        message: expect.stringContaining("cannot be made there: restore it, or correct the path"),
      });
  });

  it("is not named at all", async () => {
    for (const folder of ["", "a\0b", undefined, 7]) {
      const error = await openEmbeddedStore({ folder: folder as string }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        kind: "config",
        message: expect.stringContaining("folder must be the path"),
      });
    }
  });

  it("is on a file system that several machines share", () => {
    expect(() => assertLocal("/there", 0x6969)).toThrow(/^'\/there' is on NFS/);
    expect(() => assertLocal("/there", 0xff534d42 | 0)).toThrow("CIFS");
    expect(() => assertLocal("/there", 0xef53)).not.toThrow();
  });
});

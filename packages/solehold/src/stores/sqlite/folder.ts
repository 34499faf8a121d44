/**
 * The folder of a store, and whether it can be one. Nothing is changed in a folder that cannot. The files of a store
 * are opened by SQLite alone: to open and close them here would drop the locks that this process has on them.
 */
import { existsSync } from "node:fs";
import { access, constants, readdir, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf, makeFolders, syncFolder } from "../../support/files.ts";
import { fileFailure } from "../support/file-failure.ts";
import { assertLocal } from "../support/network-file-systems.ts";
import { configProblem } from "./failure.ts";

export const MARKER_FILE = "solehold.json";
const DATABASE_FILE = "leases.db";
/** The journal is there for a moment, while the process that makes the database turns on its write-ahead log. */
const OWN_FILES: readonly string[] = [
  DATABASE_FILE,
  "leases.db-journal",
  "leases.db-wal",
  "leases.db-shm",
  MARKER_FILE,
];
const READ_WRITE = constants.R_OK | constants.W_OK;
/** Put there by the operating system. */
const HARMLESS: readonly string[] = ["lost+found", ".DS_Store"];

/** Makes the folder and an empty database if they are missing. Rejects with "config" when it cannot be a store's. */
export async function prepareFolder(folder: string): Promise<void> {
  await naming(folder, prepare(folder));
}

async function prepare(folder: string): Promise<void> {
  await unless("EEXIST", makeFolders(folder));
  const names = await ownFiles(folder);
  if (names.includes(DATABASE_FILE)) return;
  if (names.length > 0)
    throw configProblem(
      `'${join(folder, DATABASE_FILE)}' is missing: restore it from a backup. Without it all leases are forgotten; to begin anew, empty the folder`,
    );
  // SQLite gives its other files the mode of this one. Of several processes one makes it.
  await unless("EEXIST", writeFile(join(folder, DATABASE_FILE), "", { flag: "wx", mode: 0o600 }));
  await syncFolder(folder);
  await syncFolder(dirname(folder));
}

export async function assertStore(folder: string): Promise<void> {
  await naming(folder, ownFiles(folder));
  if (!existsSync(join(folder, DATABASE_FILE))) throw configProblem(`'${folder}' holds no embedded store`);
}

/** Those of the store. Rejects when the folder cannot be one's, or this process may not use what is there. */
async function ownFiles(folder: string): Promise<readonly string[]> {
  if (!(await stat(folder)).isDirectory())
    throw configProblem(`'${folder}' is not a folder: give the embedded store a folder of its own`);
  await access(folder, READ_WRITE | constants.X_OK);
  assertLocal(folder, (await statfs(folder)).type);
  const names = (await readdir(folder)).filter((name) => !HARMLESS.includes(name));
  const others = names.filter((name) => !OWN_FILES.includes(name));
  if (others.length > 0)
    throw configProblem(
      `'${folder}' holds other files ('${others.slice(0, 3).join("', '")}'): give the embedded store a folder of its own`,
    );
  for (const name of names) {
    const path = join(folder, name);
    // The last process that closes the store deletes the files beside the database.
    await naming(path, unless("ENOENT", access(path, READ_WRITE)));
  }
  return names;
}

async function unless(code: "EEXIST" | "ENOENT", work: Promise<unknown>): Promise<void> {
  await work.catch((error) => {
    if (codeOf(error) !== code) throw error;
  });
}

async function naming(path: string, work: Promise<unknown>): Promise<void> {
  await work.catch((error) => {
    throw fileFailure(`the embedded store in '${path}'`, error, "not-applied");
  });
}

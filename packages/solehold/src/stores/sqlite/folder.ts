/**
 * The folder of a store, and whether it can be one. Nothing is changed in a folder that cannot. The files of a store
 * are opened by SQLite alone: to open and close them here would drop the locks that this process has on them.
 */
import { access, constants, mkdir, readdir, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { StoreError } from "../../store/index.ts";
import { codeOf, syncFolder } from "../support/files.ts";
import { networkFileSystem } from "../support/network-file-systems.ts";
import { configProblem } from "./failure.ts";

export const MARKER_FILE = "solehold.json";
const DATABASE_FILE = "leases.db";
const OWN_FILES: readonly string[] = [DATABASE_FILE, "leases.db-wal", "leases.db-shm", MARKER_FILE];
const LMDB_FILE = "data.mdb";
/** Put there by the operating system. */
const HARMLESS: readonly string[] = ["lost+found", ".DS_Store"];

const NO_PERMISSION = "no permission to read and write P: run as its owner or change its mode";
const ADVICE: ReadonlyMap<string, string> = new Map([
  ["EACCES", NO_PERMISSION],
  ["EPERM", NO_PERMISSION],
  ["EROFS", "P is on a read-only file system: choose a folder that can be written"],
]);

/** Makes the folder and an empty database if they are missing. Rejects with "config" when it cannot be a store's. */
export async function prepareFolder(folder: string): Promise<void> {
  await naming(folder, async () => {
    await mkdir(dirname(folder), { recursive: true });
    await unlessThere(mkdir(folder, { mode: 0o700 }));
    const names = await ownFiles(folder);
    if (names.includes(DATABASE_FILE)) return;
    if (names.length > 0)
      throw configProblem(
        `'${join(folder, DATABASE_FILE)}' is missing: restore it from a backup. Without it all leases are forgotten; to begin anew, empty the folder`,
      );
    // SQLite gives its other files the mode of this one. Of several processes one makes it.
    await unlessThere(writeFile(join(folder, DATABASE_FILE), "", { flag: "wx", mode: 0o600 }));
    await syncFolder(folder);
    await syncFolder(dirname(folder));
  });
}

export async function assertStore(folder: string): Promise<void> {
  await naming(folder, async () => {
    if (!(await ownFiles(folder)).includes(DATABASE_FILE))
      throw configProblem(`'${folder}' holds no embedded store`);
  });
}

/** Those of the store. Rejects when the folder cannot be one's, or this process may not use what is there. */
async function ownFiles(folder: string): Promise<readonly string[]> {
  if (!(await stat(folder)).isDirectory())
    throw configProblem(`'${folder}' is not a folder: give the embedded store a folder of its own`);
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  const network = networkFileSystem((await statfs(folder)).type);
  if (network !== null)
    throw configProblem(`'${folder}' is on ${network}: the embedded store needs a local disk`);
  const names = (await readdir(folder)).filter((name) => !HARMLESS.includes(name));
  if (names.includes(LMDB_FILE))
    throw configProblem(
      `'${folder}' holds an embedded store of an earlier version, on LMDB, which this version cannot read: let its leases end with that version, then use another folder`,
    );
  const others = names.filter((name) => !OWN_FILES.includes(name));
  if (others.length > 0)
    throw configProblem(
      `'${folder}' holds other files ('${others.slice(0, 3).join("', '")}'): give the embedded store a folder of its own`,
    );
  for (const name of names) {
    const path = join(folder, name);
    await access(path, constants.R_OK | constants.W_OK).catch((error: Error) => {
      // The last process that closes the store deletes the files beside the database.
      if (codeOf(error) !== "ENOENT") throw fileProblem(path, error);
    });
  }
  return names;
}

async function unlessThere(making: Promise<void>): Promise<void> {
  await making.catch((error) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
}

async function naming(folder: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => {
    throw codeOf(error) === undefined ? error : fileProblem(folder, error);
  });
}

function fileProblem(path: string, error: Error): StoreError {
  const advice = ADVICE.get(codeOf(error) ?? "");
  return advice === undefined
    ? configProblem(`the folder of the embedded store cannot be used: ${error.message}`, error)
    : configProblem(
        advice.replace("P", () => `'${path}'`),
        error,
      );
}

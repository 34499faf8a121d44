/**
 * The folder of a store, and whether it can be one. Nothing is changed in a folder that cannot. The files of a store
 * are opened by SQLite alone: to open and close them here would drop the locks that this process has on them.
 */
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { StoreError } from "../../store/index.ts";
import { codeOf } from "../support/files.ts";
import { networkFileSystem } from "../support/network-file-systems.ts";
import { configProblem } from "./failure.ts";

const DATABASE_FILE = "leases.db";
export const MARKER_FILE = "solehold.json";
const OWN_FILES: readonly string[] = [DATABASE_FILE, "leases.db-wal", "leases.db-shm", MARKER_FILE];
/** Put there by the operating system. */
const HARMLESS: readonly string[] = ["lost+found", ".DS_Store"];
const LMDB_FILE = "data.mdb";
const READ_WRITE = constants.R_OK | constants.W_OK;

/** Makes the folder and an empty database if they are missing. Throws a StoreError "config" when it cannot be a store's. */
export function prepareFolder(folder: string): void {
  inFolder(folder, () => {
    const stats = statSync(folder, { throwIfNoEntry: false });
    if (stats === undefined) makeFolder(folder);
    assertFolder(folder, stats);
    accessSync(folder, READ_WRITE | constants.X_OK);
    const names = namesIn(folder);
    if (names.includes(DATABASE_FILE)) return;
    if (names.length > 0)
      throw configProblem(
        `'${join(folder, DATABASE_FILE)}' is missing: restore it from a backup. Without it all leases are forgotten; to begin anew, empty the folder`,
      );
    makeDatabase(folder);
  });
}

/** Throws unless the folder has a store's files, all of which this process may read and write. */
export function assertStore(folder: string): void {
  inFolder(folder, () => {
    assertFolder(folder, statSync(folder));
    if (!namesIn(folder).includes(DATABASE_FILE)) throw configProblem(`'${folder}' holds no embedded store`);
  });
}

function assertFolder(folder: string, stats: Stats | undefined): void {
  if (stats !== undefined && !stats.isDirectory())
    throw configProblem(`'${folder}' is not a folder: give the embedded store a folder of its own`);
  const network = networkFileSystem(statfsSync(folder).type);
  if (network !== null)
    throw configProblem(`'${folder}' is on ${network}: the embedded store needs a local disk`);
}

/** The store's own files. Throws when there are others, or one of its own cannot be used. */
function namesIn(folder: string): readonly string[] {
  const names = readdirSync(folder).filter((name) => !HARMLESS.includes(name));
  if (names.includes(LMDB_FILE))
    throw configProblem(
      `'${folder}' holds an embedded store of an earlier version, on LMDB, which this version cannot read: let its leases end with that version, then use another folder`,
    );
  const others = names.filter((name) => !OWN_FILES.includes(name));
  if (others.length > 0)
    throw configProblem(
      `'${folder}' holds other files ('${others.slice(0, 3).join("', '")}'): give the embedded store a folder of its own`,
    );
  for (const name of names) assertAccess(join(folder, name));
  return names;
}

/** The last process that closes the store deletes the files beside the database. */
function assertAccess(path: string): void {
  try {
    accessSync(path, READ_WRITE);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw fileProblem(path, error as Error);
  }
}

/** SQLite gives its other files the mode of this one. Of several processes one makes it. */
function makeDatabase(folder: string): void {
  try {
    closeSync(openSync(join(folder, DATABASE_FILE), "wx", 0o600));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
  syncFolder(folder);
  syncFolder(dirname(folder));
}

function makeFolder(folder: string): void {
  mkdirSync(dirname(folder), { recursive: true });
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

function inFolder(path: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw codeOf(error) === undefined ? error : fileProblem(path, error as Error);
  }
}

function fileProblem(path: string, error: Error): StoreError {
  const code = codeOf(error);
  if (code === "EACCES" || code === "EPERM")
    return configProblem(
      `no permission to read and write '${path}': run as its owner or change its mode`,
      error,
    );
  if (code === "EROFS")
    return configProblem(
      `'${path}' is on a read-only file system: choose a folder that can be written`,
      error,
    );
  return configProblem(`the folder of the embedded store cannot be used: ${error.message}`, error);
}

/** A file's name is on disk only after its folder was synced. Some systems cannot; they need not. */
function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, "r");
    fsyncSync(descriptor);
    closeSync(descriptor);
  } catch {
    // The name then becomes durable with the file system's next commit.
  }
}

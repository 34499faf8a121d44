/**
 * The folder of a store, and whether it is one. Nothing is changed in a folder that is not.
 *
 * A file `solehold.json` marks it: empty while the store is being made, so that a process that dies or
 * another that comes at that moment knows; with content once it is complete. A complete store whose data
 * is gone is never made anew, because its fences would begin again.
 */
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  type Stats,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DATA_FILE, LOCK_FILE } from "./database.ts";
import { configProblem, oneLine } from "./failure.ts";

const MARKER_FILE = "solehold.json";
const MARKER = { store: "solehold-embedded", format: 1 };
/** Put there by the operating system. */
const HARMLESS: readonly string[] = ["lost+found", ".DS_Store"];
const OWNER_ONLY = 0o700;
const READ_WRITE = constants.R_OK | constants.W_OK;

const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x01021997, "9p"],
  [0x00c36400, "Ceph"],
]);

export type FolderState = "new" | "existing";

/** Makes the folder if it is missing. Throws a StoreError "config" when it cannot be a store's. */
export function prepareFolder(folder: string): FolderState {
  const stats = statsOf(folder);
  if (stats === undefined) makeFolder(folder);
  else if (!stats.isDirectory())
    throw configProblem(`'${folder}' is not a folder: give the embedded store a folder of its own`);
  assertAccess(folder, READ_WRITE | constants.X_OK);
  assertLocal(folder);
  const names = readdirSync(folder).filter((name) => !HARMLESS.includes(name));
  if (names.includes(MARKER_FILE)) return markedState(folder, names);
  if (names.length > 0) {
    const others = names.slice(0, 3).join("', '");
    throw configProblem(
      `'${folder}' holds other files ('${others}'): give the embedded store a folder of its own`,
    );
  }
  markAsBegun(folder);
  return "new";
}

/** The store is complete: from now on missing data is an error. Durable, like the data. */
export function completeFolder(folder: string): void {
  const marker = join(folder, MARKER_FILE);
  const temporary = `${marker}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(MARKER)}\n`, { mode: 0o600, flush: true });
  renameSync(temporary, marker);
  syncFolder(folder);
  syncFolder(dirname(folder));
}

function markedState(folder: string, names: readonly string[]): FolderState {
  const text = readFileSync(join(folder, MARKER_FILE), "utf8");
  for (const name of [DATA_FILE, LOCK_FILE]) {
    if (names.includes(name)) assertAccess(join(folder, name), READ_WRITE);
  }
  if (text === "") return "new";
  assertMarker(folder, text);
  if (!names.includes(DATA_FILE))
    throw configProblem(
      `'${join(folder, DATA_FILE)}' is missing: restore it from a backup; without it all fences are forgotten`,
    );
  return "existing";
}

function assertMarker(folder: string, text: string): void {
  let marker: unknown;
  try {
    marker = JSON.parse(text);
  } catch {
    marker = null;
  }
  const { store, format } = (marker ?? {}) as Partial<typeof MARKER>;
  if (store !== MARKER.store)
    throw configProblem(
      `'${join(folder, MARKER_FILE)}' is not a marker of the embedded store: use another folder`,
    );
  if (format !== MARKER.format)
    throw configProblem(
      `'${folder}' has format ${String(format)}, this version reads format ${MARKER.format}: use the version that wrote it`,
    );
}

/** Another process may be doing the same: only one of them creates the file, and both go on. */
function markAsBegun(folder: string): void {
  try {
    closeSync(openSync(join(folder, MARKER_FILE), "wx", 0o600));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw fileProblem(folder, error);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(dirname(folder), { recursive: true });
    mkdirSync(folder, { mode: OWNER_ONLY });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw fileProblem(folder, error);
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw fileProblem(path, error);
  }
}

function assertAccess(path: string, mode: number): void {
  try {
    accessSync(path, mode);
  } catch (error) {
    throw fileProblem(path, error);
  }
}

function assertLocal(folder: string): void {
  const network = networkFileSystem(statfsSync(folder).type);
  if (network !== null)
    throw configProblem(`'${folder}' is on ${network}: the embedded store needs a local disk`);
}

/** The name of a file system that several machines share and on which LMDB's locks and map do not work. */
export function networkFileSystem(type: number): string | null {
  return NETWORK_FILE_SYSTEMS.get(type >>> 0) ?? null;
}

function fileProblem(path: string, error: unknown): Error {
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
  return configProblem(`the folder of the embedded store cannot be used: ${oneLine(error)}`, error);
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code;
}

/** A file's name is on disk only after its folder was synced. Some systems cannot; they need not. */
function syncFolder(folder: string): void {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(folder, "r");
    fsyncSync(descriptor);
  } catch {
    // The name then becomes durable with the file system's next commit.
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

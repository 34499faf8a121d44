/**
 * The folders of a file store: `leases` with one file a key, and `.solehold` with what only Solehold needs
 * (the lock, the clock, files that are being written). Both are on one file system, so a rename is atomic.
 *
 * File systems that several machines share are refused where they can be recognised: their renames, locks
 * and clocks are not those of one machine.
 */
import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs";
import { open, rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Env, randomId } from "../../env/index.ts";
import { codeOf, configProblem, fileFailure } from "./failures.ts";

/** By the number that statfs gives, as in Linux's magic.h and the file systems' own sources. */
const SHARED_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x01021997, "9p"],
  [0x65735546, "FUSE"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x786f4256, "a VirtualBox share"],
]);

export interface StoreFolders {
  readonly root: string;
  readonly leases: string;
  readonly internal: string;
}

/** Makes what is missing. Throws a StoreError "config" when the folder cannot be used. */
export function prepareFolders(root: string, fileSystemType: (path: string) => number): StoreFolders {
  const folders = { root, leases: join(root, "leases"), internal: join(root, ".solehold") };
  try {
    if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === false)
      throw configProblem(`'${root}' is not a folder: give the file store a folder of its own`);
    mkdirSync(root, { recursive: true, mode: 0o700 });
    const shared = sharedFileSystem(fileSystemType(root));
    if (shared !== null)
      throw configProblem(
        `'${root}' is on ${shared}, which several machines can share: the file store needs a local disk`,
      );
    for (const folder of [folders.leases, folders.internal]) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    }
  } catch (error) {
    if (codeOf(error) === "ENOTDIR")
      throw configProblem(`a part of '${root}' is not a folder: correct the path`, error);
    throw fileFailure(root, error, "not-applied");
  }
  return folders;
}

export function realFileSystemType(path: string): number {
  return statfsSync(path).type;
}

export function sharedFileSystem(type: number): string | null {
  return SHARED_FILE_SYSTEMS.get(type >>> 0) ?? null;
}

/** Durable under another name: the content is on disk, what remains is the rename. */
export async function writeTemporary(internal: string, text: string, env: Env): Promise<string> {
  const path = join(internal, `${randomId(env)}.tmp`);
  await writeFile(path, text, { mode: 0o600, flag: "wx", flush: true });
  return path;
}

/** All of the text or nothing, in the place of what was there. Its name is durable after `syncFolder`. */
export async function replaceFile(internal: string, path: string, text: string, env: Env): Promise<void> {
  await rename(await writeTemporary(internal, text, env), path);
}

/** A file's name is on disk only after its folder was synced. Some systems cannot; they need not. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } catch (error) {
    if (codeOf(error) !== "EINVAL" && codeOf(error) !== "EISDIR") throw error;
  } finally {
    await handle.close();
  }
}

export async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** From a folder to a store: look at the file system, take the lock once, tidy up, join the clock. */
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Env, realEnv } from "../../env/index.ts";
import { type Boot, readBoot } from "../embedded/boot.ts";
import { assertOptions } from "../support/options.ts";
import { openClock } from "./clock-file.ts";
import { configProblem, fileFailure } from "./failures.ts";
import { prepareFolders, realFileSystemType, removeIfThere } from "./folder.ts";
import { FolderLock } from "./lock.ts";
import { isGone, parseOwner } from "./owner.ts";
import { FileStore } from "./store.ts";

export interface FileStoreOptions {
  /** A folder on a local disk. It is made if it is missing. */
  readonly folder: string;
  /** How long a write waits for another process that writes. Default 5000. */
  readonly timeoutMs?: number;
  readonly env?: Env;
}

/** What a test may put in the place of the real world. */
export interface Seams {
  readonly readBoot: (env: Env) => Boot;
  readonly fileSystemType: (path: string) => number;
}

const REAL_SEAMS: Seams = { readBoot, fileSystemType: realFileSystemType };

/** Rejects with a StoreError "config" when the folder cannot be used. */
export async function openFileStore(options: FileStoreOptions): Promise<FileStore> {
  assertOptions("openFileStore", options, '{ folder: "./leases" }');
  return await openWithSeams(options, {});
}

export async function openWithSeams(options: FileStoreOptions, changes: Partial<Seams>): Promise<FileStore> {
  const seams: Seams = { ...REAL_SEAMS, ...changes };
  const { env = realEnv, timeoutMs = 5_000, folder } = options;
  if (typeof folder !== "string" || folder === "")
    throw configProblem(`file: folder must be a path, got ${JSON.stringify(folder)}`);
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1)
    throw configProblem(`file: timeoutMs must be a whole number from 1, got ${String(timeoutMs)}`);
  const root = resolve(folder);
  const folders = prepareFolders(root, seams.fileSystemType);
  const boot = seams.readBoot(env);
  const lock = new FolderLock({ folder: folders.internal, bootId: boot.id, timeoutMs, env });
  try {
    const clock = await lock.hold(async () => {
      await tidy(folders.internal, boot.id);
      return await openClock(folders.internal, env, boot);
    });
    return new FileStore({ folders, lock, clock, env });
  } catch (error) {
    throw fileFailure(root, error, "not-applied");
  }
}

/** What processes that died left behind. Whoever writes has the lock, so every unfinished file is a dead one's. */
async function tidy(internal: string, bootId: string): Promise<void> {
  for (const file of await readdir(internal)) {
    const path = join(internal, file);
    if (file.endsWith(".tmp")) await removeIfThere(path);
    if (!file.startsWith("owner-")) continue;
    const owner = parseOwner(await readFile(path, "utf8").catch(() => ""));
    if (owner !== null && isGone(owner, bootId)) await removeIfThere(path);
  }
}

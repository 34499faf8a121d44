/**
 * From a folder to a store: look at the file system, take the lock once, tidy up, join the clock.
 *
 * `leases` (or the prefix) has one file a key, `.solehold` what only Solehold needs: the lock, the clock, unfinished files.
 */
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Env, realEnv } from "../../env/index.ts";
import { assertWholeNumbers } from "../../store/index.ts";
import { type Boot, readBoot } from "../../support/boot.ts";
import { makeFolders, removeIfThere } from "../../support/files.ts";
import { FolderLock } from "../../support/folder-lock.ts";
import { pidNamespace } from "../../support/process-identity.ts";
import { assertPrefix, DEFAULT_PREFIX } from "../object/urls.ts";
import { fileFailure } from "../support/file-failure.ts";
import { assertLocal } from "../support/network-file-systems.ts";
import { assertOptions, configError } from "../support/options.ts";
import { openClock } from "./clock.ts";
import { LeaseFiles } from "./lease-files.ts";
import { type FileStore, fileStore } from "./store.ts";

export interface FileStoreOptions {
  /** A folder on a local disk. It is made if it is missing. */
  readonly folder: string;
  /** Where in the folder the files of the leases lie. Default `leases/`; a missing slash is added. */
  readonly prefix?: string;
  /** How long a write waits for another process that writes. Default 5000. */
  readonly timeoutMs?: number;
  readonly env?: Env;
}

/** What a test may put in the place of the real world. */
export interface Seams {
  readonly readBoot: (env: Env) => Boot;
  readonly fileSystemType: (path: string) => number;
}

const REAL_SEAMS: Seams = { readBoot, fileSystemType: (path) => statfsSync(path).type };

/** Rejects with a StoreError "config" when the folder cannot be used. */
export async function openFileStore(options: FileStoreOptions): Promise<FileStore> {
  const known = "folder prefix timeoutMs";
  assertOptions("openFileStore", options, '{ folder: "./leases" }', known);
  return await openWithSeams(options, {});
}

export async function openWithSeams(options: FileStoreOptions, changes: Partial<Seams>): Promise<FileStore> {
  const seams: Seams = { ...REAL_SEAMS, ...changes };
  const { env = realEnv, timeoutMs = 5_000, folder, prefix = DEFAULT_PREFIX } = options;
  if (typeof folder !== "string" || folder === "")
    throw configError(`file: folder must be a path, got ${JSON.stringify(folder)}`);
  assertWholeNumbers("file", { timeoutMs }, 1);
  const root = resolve(folder);
  const [leases, internal] = [join(root, assertPrefix(prefix, "file")), join(root, ".solehold")];
  try {
    await prepare(root, [leases, internal], seams);
    const boot = seams.readBoot(env);
    // No host: only this machine reaches a local disk, so another boot is an earlier one.
    const scope = { bootId: boot.id, pidNamespace: pidNamespace() };
    const lock = new FolderLock({ folder: internal, scope, timeoutMs, env, durable: "no" });
    const clock = await lock.hold(async () => {
      await lock.tidy();
      // A writer has the lock, so every unfinished file is a dead process's.
      for (const file of await readdir(internal)) {
        if (file.endsWith(".tmp")) await removeIfThere(join(internal, file));
      }
      return await openClock({ folder: internal, env }, boot);
    });
    return fileStore({ folder: internal, files: new LeaseFiles(leases, clock), lock, clock, env });
  } catch (error) {
    throw fileFailure(`the file store in '${root}'`, error, "not-applied");
  }
}

/** Makes what is missing. */
async function prepare(root: string, folders: readonly string[], { fileSystemType }: Seams): Promise<void> {
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === false)
    throw configError(`'${root}' is not a folder: give the file store a folder of its own`);
  // The embedded store opens no folder with foreign files: what is made below would shut its processes out.
  if (existsSync(join(root, "leases.db")))
    throw configError(`'${root}' holds an embedded store: give the file store a folder of its own`);
  await makeFolders(root);
  assertLocal(root, fileSystemType(root));
  for (const folder of folders) {
    await makeFolders(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  }
}

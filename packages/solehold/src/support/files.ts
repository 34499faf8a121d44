/** Files that are replaced whole and survive a crash of the machine. */
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, rename, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Env, randomId } from "../env/index.ts";

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code;
}

/**
 * Makes the folder, for the owner's eyes only, and those above that are missing; the result is the topmost of them.
 * `mkdir` does the same with `recursive`, but never ends where no folder can be made and the system says ENOENT (/proc,
 * automounts).
 */
export async function makeFolders(path: string): Promise<string | undefined> {
  try {
    return await makeFolder(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  // Where the one above is there, another process has made it since, or no folder can be made in it: a second try tells.
  const topmost = existsSync(dirname(path)) ? undefined : await makeFolders(dirname(path));
  const made = await makeFolder(path);
  return topmost ?? made;
}

/** Undefined when it was there. */
async function makeFolder(path: string): Promise<string | undefined> {
  try {
    await mkdir(path, { mode: 0o700 });
    return path;
  } catch (error) {
    if (codeOf(error) === "EEXIST" && (await stat(path)).isDirectory()) return undefined;
    throw error;
  }
}

/** Durable under another name in `folder`: the content is on disk, what remains is the rename. */
export async function writeTemporary(folder: string, text: string, env: Env): Promise<string> {
  const path = join(folder, `${randomId(env)}.tmp`);
  await writeFile(path, text, { mode: 0o600, flag: "wx", flush: true });
  return path;
}

/** All of the text or nothing, in the place of what was there. Its name is durable after `syncFolder`. */
export async function replaceFile(
  path: string,
  text: string,
  by: { readonly folder: string; readonly env: Env },
): Promise<void> {
  await rename(await writeTemporary(by.folder, text, by.env), path);
}

/** Systems that cannot sync a folder say one of these; there is nothing to do about it. */
const FOLDER_SYNC_UNSUPPORTED: ReadonlySet<string | undefined> = new Set([
  ...["EISDIR", "EPERM", "EINVAL", "ENOTSUP"],
]);

/** A file's name is on disk only after its folder was synced: without it the file may vanish with the power. */
export async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, "r");
    await handle.sync();
  } catch (error) {
    if (!FOLDER_SYNC_UNSUPPORTED.has(codeOf(error))) throw error;
  } finally {
    await handle?.close();
  }
}

export async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** A thorough look at a store's files, for operators: reads every page in use, changes nothing. */
import { join, resolve } from "node:path";
import { type Env, realEnv } from "../../env/index.ts";
import { DamagedFile } from "./data-file.ts";
import { DATA_FILE } from "./database.ts";
import { configProblem, oneLine } from "./failure.ts";
import { type CheckReport, checkDataFile } from "./integrity.ts";
import type { WalkLevel } from "./page-walk.ts";

/**
 * Rejects with a StoreError "config" that names the damage. Null when it could not tell: on a platform
 * whose file layout is not known, or while other processes wrote all the time.
 */
export async function checkEmbeddedFolder(folder: string): Promise<CheckReport | null> {
  return await assertSoundData(resolve(folder), "full", realEnv);
}

export async function assertSoundData(
  folder: string,
  level: WalkLevel,
  env: Env,
): Promise<CheckReport | null> {
  const path = join(folder, DATA_FILE);
  try {
    return await checkDataFile(path, level, env);
  } catch (error) {
    if (error instanceof DamagedFile)
      throw configProblem(`'${path}' is damaged (${error.message}): restore it from a backup`, error);
    throw configProblem(`'${path}' cannot be read (${oneLine(error)}): check the disk and its rights`, error);
  }
}

/** A JSON file that a setting names. */
import { readFile } from "node:fs/promises";
import { ConfigError } from "./config.ts";

/** `what` names it in the message: "quorum file". */
export async function readJsonFile(path: string, what: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new ConfigError(`the ${what} ${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** The signers and thresholds that a server is started with. */
import { readFile } from "node:fs/promises";
import { Quorum, type QuorumConfig } from "solehold/coordinator";
import { ConfigError } from "./config.ts";

/** Null when no file was named. */
export async function readQuorum(path: string): Promise<Quorum | null> {
  if (path === "") return null;
  const defined = Quorum.define(await readJson(path));
  if (defined.ok) return defined.quorum;
  const problems = defined.problems.map(({ field, message }) => `${field} ${message}`).join("; ");
  throw new ConfigError(`the quorum file ${path} cannot be used: ${problems}`);
}

async function readJson(path: string): Promise<QuorumConfig> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as QuorumConfig;
  } catch (cause) {
    throw new ConfigError(`the quorum file ${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** The signers and thresholds that a server is started with. */
import { Quorum, type QuorumConfig } from "solehold/internal";
import { ConfigError } from "./config.ts";
import { readJsonFile } from "./json-file.ts";

/** Null when no file was named. */
export async function readQuorum(path: string): Promise<Quorum | null> {
  if (path === "") return null;
  const defined = Quorum.define((await readJsonFile(path, "quorum file")) as QuorumConfig);
  if (defined.ok) return defined.quorum;
  const problems = defined.problems.map(({ field, message }) => `${field} ${message}`).join("; ");
  throw new ConfigError(`the quorum file ${path} cannot be used: ${problems}`);
}

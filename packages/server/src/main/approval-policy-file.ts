/** The approval rules that a server is started with. */
import { ApprovalPolicy } from "solehold/internal";
import { ConfigError } from "./config.ts";
import { readJsonFile } from "./json-file.ts";

/** Null when no file was named: then no key needs approval. */
export async function readApprovalPolicy(path: string): Promise<ApprovalPolicy | null> {
  if (path === "") return null;
  const defined = ApprovalPolicy.define(await readJsonFile(path, "policy file"));
  if (defined.ok) return defined.policy;
  const problems = defined.problems.map(({ field, message }) => `${field} ${message}`).join("; ");
  throw new ConfigError(`the policy file ${path} cannot be used: ${problems}`);
}

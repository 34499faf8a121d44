/** The files that settings name. What cannot be used is a ConfigError that says why. */
import { readFile } from "node:fs/promises";
import { ApprovalPolicy, Quorum, type QuorumConfig } from "solehold/internal";
import { ConfigError, type ServerConfig } from "./config.ts";

/** The approval rules. Null when no file was named: then no key needs approval. */
export async function readApprovalPolicy(path: string): Promise<ApprovalPolicy | null> {
  if (path === "") return null;
  const defined = ApprovalPolicy.define(await readJson(path, "policy file"));
  if (defined.ok) return defined.policy;
  throw unusable("policy file", path, defined.problems);
}

/** The signers and thresholds for `/v1/quorum/verify`. Null when no file was named. */
export async function readQuorum(path: string): Promise<Quorum | null> {
  if (path === "") return null;
  const defined = Quorum.define((await readJson(path, "quorum file")) as QuorumConfig);
  if (defined.ok) return defined.quorum;
  throw unusable("quorum file", path, defined.problems);
}

export async function readTls({
  tlsCert,
  tlsKey,
}: ServerConfig): Promise<{ readonly cert: string; readonly key: string } | null> {
  if (tlsCert === "") return null;
  try {
    return { cert: await readFile(tlsCert, "utf8"), key: await readFile(tlsKey, "utf8") };
  } catch (cause) {
    throw new ConfigError(`--tls-cert or --tls-key cannot be read: ${(cause as Error).message}`, { cause });
  }
}

async function readJson(path: string, what: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new ConfigError(`the ${what} ${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

function unusable(
  what: string,
  path: string,
  problems: readonly { readonly field: string; readonly message: string }[],
): ConfigError {
  const list = problems.map(({ field, message }) => `${field} ${message}`).join("; ");
  return new ConfigError(`the ${what} ${path} cannot be used: ${list}`);
}

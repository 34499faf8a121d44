/** The files that settings name. What cannot be used is a ConfigError that says why. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { ApprovalPolicy, type Env, Quorum, type QuorumConfig } from "solehold/internal";
import { Identities } from "../access/identities.ts";
import type { SecureContext } from "../http/app.ts";
import { ConfigError, type ServerConfig } from "./config.ts";

const FINGERPRINT_DIGITS = 16;

export interface LoadedPolicy {
  /** Null when no file was named: then no key needs approval. */
  readonly policy: ApprovalPolicy | null;
  /** The same for two files that say the same; "none" without a file. */
  readonly fingerprint: string;
}

/** The approval rules. */
export async function readApprovalPolicy(path: string): Promise<LoadedPolicy> {
  if (path === "") return { policy: null, fingerprint: "none" };
  const content = await readJson(path, "policy file");
  const defined = ApprovalPolicy.define(content);
  if (defined.ok) return { policy: defined.policy, fingerprint: fingerprintOf(content) };
  throw unusable("policy file", path, defined.problems);
}

/** The signers and thresholds for `/v1/quorum/verify`. Null when no file was named. */
export async function readQuorum(path: string): Promise<Quorum | null> {
  if (path === "") return null;
  const defined = Quorum.define((await readJson(path, "quorum file")) as QuorumConfig);
  if (defined.ok) return defined.quorum;
  throw unusable("quorum file", path, defined.problems);
}

/** Who may come in besides those with API keys. Null when no file was named. */
export async function readIdentities(path: string, env: Env): Promise<Identities | null> {
  if (path === "") return null;
  const content = await readJson(path, "identities file");
  try {
    return new Identities(content, env);
  } catch (cause) {
    throw new ConfigError(`the identities file ${path} cannot be used: ${(cause as Error).message}`, {
      cause,
    });
  }
}

export async function readTls({ tlsCert, tlsKey, tlsClientCa }: ServerConfig): Promise<SecureContext | null> {
  if (tlsCert === "") return null;
  try {
    const own = { cert: await readFile(tlsCert, "utf8"), key: await readFile(tlsKey, "utf8") };
    return tlsClientCa === "" ? own : { ...own, ca: await readFile(tlsClientCa, "utf8"), requestCert: true };
  } catch (cause) {
    const names = "--tls-cert, --tls-key or --tls-client-ca";
    throw new ConfigError(`${names} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** Of parsed JSON, whatever order its fields are in. */
function fingerprintOf(content: unknown): string {
  const inOrder = (_field: string, value: unknown): unknown =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  const text = JSON.stringify(content, inOrder);
  return createHash("sha256").update(text).digest("hex").slice(0, FINGERPRINT_DIGITS);
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

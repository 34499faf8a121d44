/** The files of approvals: private keys, requests with the approvals given so far, and who may approve. */
import { existsSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import {
  type Approval,
  type ApprovalRequest,
  approvalRequestProblem,
  CoordinatorError,
  importPrivateKey,
  type SigningKeyPair,
} from "solehold/internal";
import { errorFailure, type Failure, usageFailure } from "../../failure.ts";

/** A request and who has approved it. It holds no secret: a signature is worth nothing for another request. */
export interface ApprovalFile {
  readonly request: ApprovalRequest;
  readonly approvals: readonly Approval[];
}

const READABLE_BY_OTHERS = 0o077;

export async function readApprovalFile(option: string, path: string): Promise<ApprovalFile> {
  const parsed = await readJson(option, path);
  const { request, approvals } = (parsed ?? {}) as {
    readonly request?: unknown;
    readonly approvals?: unknown;
  };
  const problem = approvalRequestProblem(request);
  if (problem !== null) throw usageFailure(`${option} ${path}: request.${problem.field} ${problem.message}`);
  if (!Array.isArray(approvals)) throw usageFailure(`${option} ${path}: approvals must be an array`);
  return { request: request as ApprovalRequest, approvals: approvals as readonly Approval[] };
}

/** Null when there is no such file yet. */
export async function findApprovalFile(path: string): Promise<ApprovalFile | null> {
  return existsSync(path) ? await readApprovalFile("--file", path) : null;
}

export async function writeApprovalFile(path: string, file: ApprovalFile): Promise<void> {
  await writeFile(path, `${JSON.stringify(file, null, 2)}\n`).catch((error: Error) => {
    throw cannot("write", path, error);
  });
}

/** `flag: "wx"`: a key that is there is never overwritten. */
export async function writePrivateKey(path: string, pem: string): Promise<void> {
  await writeFile(path, pem, { mode: 0o600, flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") {
      throw usageFailure(`--out ${path} is there already, and a key is never overwritten: name another file`);
    }
    throw cannot("write", path, error);
  });
}

export interface LoadedKey {
  readonly pair: SigningKeyPair;
  /** Others may read it. */
  readonly exposed: boolean;
}

export async function readPrivateKey(path: string): Promise<LoadedKey> {
  const text = await readText(path);
  const { mode } = await stat(path);
  try {
    return { pair: importPrivateKey(text), exposed: (mode & READABLE_BY_OTHERS) !== 0 };
  } catch (error) {
    if (error instanceof CoordinatorError) throw usageFailure(`--key ${path}: ${error.message}`);
    throw error;
  }
}

export async function readJson(option: string, path: string): Promise<unknown> {
  const text = await readText(path);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageFailure(`${option} ${path} is not JSON: ${(error as Error).message}`);
  }
}

async function readText(path: string): Promise<string> {
  return await readFile(path, "utf8").catch((error: Error) => {
    throw cannot("read", path, error);
  });
}

function cannot(verb: "read" | "write", path: string, error: Error): Failure {
  return errorFailure("FILE_ERROR", `cannot ${verb} ${path}: ${error.message}`, { path });
}

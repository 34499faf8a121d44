/** Signs a request: says in words what is being signed, asks, signs, and adds the approval to its file. */
import { payloadOf, realEnv, signApproval } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, errorFailure, usageFailure } from "../failure.ts";
import { printAnswer, printNotice } from "../format/answer.ts";
import { describePayload } from "../format/describe-payload.ts";
import { durationOption, requiredOption } from "../parse/option-values.ts";
import { type ApprovalFile, findApprovalFile, readPrivateKey, writeApprovalFile } from "./approvals/files.ts";
import { requestFrom } from "./approvals/request.ts";
import { confirm } from "./confirm.ts";

const DEFAULT_VALIDITY_MS = 3_600_000;

export async function approve(invocation: Invocation): Promise<number> {
  const path = requiredOption(invocation, "file", "name the file of the request and its approvals");
  const signerId = requiredOption(invocation, "signer", "say who approves, as the policy file names it");
  const keyPath = requiredOption(invocation, "key", "name the private key's file");
  const { pair, exposed } = await readPrivateKey(keyPath);
  if (exposed) printNotice(invocation.io, "others may read the private key: chmod 600 its file");
  const { request, approvals } = await fileFor(invocation, path);
  const notBeforeMs = Math.floor(realEnv.wallMs());
  const notAfterMs = notBeforeMs + (durationOption(invocation, "valid-for", 1) ?? DEFAULT_VALIDITY_MS);
  const payload = payloadOf(request, { signerId, notBeforeMs, notAfterMs, signature: "" });
  if (!(await confirm(invocation, [...describePayload(payload, signerId), ""], "Sign this?")))
    throw errorFailure("NOT_SIGNED", "not signed");
  const approval = signApproval(pair.privateKey, payload, signerId);
  const others = approvals.filter((each) => each.signerId !== signerId);
  await writeApprovalFile(path, { request, approvals: [...others, approval] });
  const count = others.length + 1;
  printAnswer(invocation, {
    document: () => ({ file: path, signerId, notAfterMs, nonce: request.nonce, approvals: count }),
    lines: () => [`approved by ${signerId}: ${path} holds ${count} approval${count === 1 ? "" : "s"} now`],
  });
  return EXIT.ok;
}

/** A new request from the options, or the one that others have approved before. */
async function fileFor(invocation: Invocation, path: string): Promise<ApprovalFile> {
  const found = await findApprovalFile(path);
  const isNew = invocation.positionals.length > 0;
  if (isNew && found !== null) {
    const fix = "leave KEY out to approve that, or name another file";
    throw usageFailure(`--file ${path} holds a request already: ${fix}`);
  }
  if (isNew) return { request: requestFrom(invocation, realEnv), approvals: [] };
  if (found !== null) return found;
  throw usageFailure(`--file ${path} is not there: give KEY and what is asked for, to begin it`);
}

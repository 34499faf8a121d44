/** The steps of `approve`: the request, the words, the question, the signature, the file. */
import { type Approval, type ApprovalRequest, payloadOf, realEnv, signApproval } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { printAnswer } from "../text/print.ts";
import { durationOption, requiredOption } from "../values.ts";
import { type ApprovalFile, findApprovalFile, readPrivateKey, writeApprovalFile } from "./files.ts";
import { requestFrom } from "./request.ts";
import { payloadInWords } from "./words.ts";

const DEFAULT_VALIDITY_MS = 3_600_000;

export async function approve(invocation: Invocation): Promise<number> {
  const { io } = invocation;
  const path = requiredOption(invocation, "file", "name the file of the request and its approvals");
  const signerId = requiredOption(invocation, "signer", "say who approves, as the policy file names it");
  const { pair, exposed } = await readPrivateKey(
    requiredOption(invocation, "key", "name the private key's file"),
  );
  if (exposed) io.stderr.write("solehold: others may read the private key: chmod 600 its file\n");
  const { request, approvals } = await fileFor(invocation, path);
  const notBeforeMs = Math.floor(realEnv.wallMs());
  const notAfterMs = notBeforeMs + (durationOption(invocation, "valid-for", 1) ?? DEFAULT_VALIDITY_MS);
  const payload = payloadOf(request, { signerId, notBeforeMs, notAfterMs, signature: "" });
  await confirm(invocation, payloadInWords(payload, signerId));
  const approval = signApproval(pair.privateKey, payload, signerId);
  const others = approvals.filter((each) => each.signerId !== signerId);
  await writeApprovalFile(path, { request, approvals: [...others, approval] });
  sayDone(invocation, path, approval, request, others.length + 1);
  return EXIT.ok;
}

/** A new request from the options, or the one that others have approved before. */
async function fileFor(invocation: Invocation, path: string): Promise<ApprovalFile> {
  const found = await findApprovalFile(path);
  if (invocation.positionals.length === 0) {
    if (found === null)
      throw usageFailure(`--file ${path} is not there: give KEY and what is asked for, to begin it`);
    return found;
  }
  if (found !== null) {
    throw usageFailure(
      `--file ${path} holds a request already: leave KEY out to approve that, or name another file`,
    );
  }
  return { request: requestFrom(invocation, realEnv), approvals: [] };
}

async function confirm({ io, flags }: Invocation, words: readonly string[]): Promise<void> {
  io.stderr.write(`${words.join("\n")}\n\n`);
  if (flags.has("yes")) return;
  const answer = await io.ask("Sign this? Type 'yes': ");
  if (answer === null) throw usageFailure("nobody is there to be asked: read the above, and pass --yes");
  if (answer.trim() === "yes") return;
  throw new Failure("not signed", { exitCode: EXIT.error, code: "NOT_SIGNED" });
}

function sayDone(
  invocation: Invocation,
  path: string,
  approval: Approval,
  request: ApprovalRequest,
  count: number,
): void {
  const { signerId, notAfterMs } = approval;
  printAnswer(invocation, {
    document: () => ({ file: path, signerId, notAfterMs, nonce: request.nonce, approvals: count }),
    lines: () => [`approved by ${signerId}: ${path} holds ${count} approval${count === 1 ? "" : "s"} now`],
  });
}

/** Would these approvals do? Who may approve, what was approved, and what is missing. Asking uses nothing up. */
import {
  ApprovalPolicy,
  type ApprovalRequest,
  describeFailure,
  Quorum,
  type QuorumConfig,
  type QuorumVerification,
  randomId,
  realEnv,
  verifyQuorum,
} from "solehold/internal";
import type { Invocation } from "../command.ts";
import { EXIT, type Failure, usageFailure } from "../failure.ts";
import { type JsonValue, printAnswer } from "../format/answer.ts";
import { requiredOption } from "../parse/option-values.ts";
import { readApprovalFile, readJson } from "./approvals/files.ts";

export async function quorum(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const path = requiredOption(invocation, "policy", "name the policy file with the signers");
  const file = requiredOption(invocation, "file", "name the file that approve wrote");
  const { request: written, approvals } = await readApprovalFile("--file", file);
  const { quorum: needed, request } = quorumFor(await readJson("--policy", path), path, written);
  const verification = verifyQuorum({
    quorum: needed,
    leaseId: `${request.tenant}/${request.key}`,
    request,
    approvals,
    nowMs: instantOf(values.at),
    traceId: values["trace-id"] ?? randomId(realEnv),
  });
  printAnswer(invocation, {
    document: () => JSON.parse(JSON.stringify(verification)) as JsonValue,
    lines: () => linesFor(verification),
  });
  return verification.passed ? EXIT.ok : EXIT.error;
}

/** Under a policy with rules the tier is the rule's, whatever the request says: as in the service. */
function quorumFor(
  policy: unknown,
  path: string,
  request: ApprovalRequest,
): { readonly quorum: Quorum; readonly request: ApprovalRequest } {
  if (typeof policy === "object" && policy !== null && "rules" in policy) {
    const defined = ApprovalPolicy.define(policy);
    if (!defined.ok) throw badPolicy(path, defined.problems);
    const rule = defined.policy.ruleFor(request.tenant, request.key);
    if (rule === null) {
      throw usageFailure(
        `--policy ${path} has no rule for ${request.tenant}/${request.key}: it needs no approval`,
      );
    }
    return { quorum: rule.quorum, request: { ...request, tier: rule.tier } };
  }
  const defined = Quorum.define(policy as QuorumConfig);
  if (!defined.ok) throw badPolicy(path, defined.problems);
  return { quorum: defined.quorum, request };
}

function badPolicy(
  path: string,
  problems: readonly { readonly field: string; readonly message: string }[],
): Failure {
  const list = problems.map(({ field, message }) => `${field} ${message}`).join("; ");
  return usageFailure(`--policy ${path} cannot be used: ${list}`);
}

function instantOf(at: string | undefined): number {
  if (at === undefined) return Math.floor(realEnv.wallMs());
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) throw usageFailure(`--at must be an ISO 8601 instant, got ${JSON.stringify(at)}`);
  return ms;
}

function linesFor({ passed, leaseId, tier, required, received, failures, accepted }: QuorumVerification) {
  return [
    `${passed ? "enough" : "NOT enough"}: ${leaseId} is ${tier}, which needs ${required}; ${received} count`,
    ...accepted.map(({ signerId }) => `  ok    ${signerId}`),
    ...failures.map((failure) => `  fail  ${describeFailure(failure)} (${failure.code})`),
  ];
}

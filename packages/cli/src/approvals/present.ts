/** `--approvals FILE`: presents what signers consented to, after a look that it is for this very request. */
import type { Leases, PresentedApprovals, Purpose } from "solehold";
import type { GuardedCommand } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { usageFailure } from "../failure.ts";

/** What is compared, and how to ask for something else. The tier and the signatures are for the server to judge. */
const COMPARED = {
  tenant: "--tenant",
  key: "KEY",
  action: "this command, with or without --fence",
  holder: "--holder",
  purpose: "--purpose",
  ttlMs: "--ttl (or --period)",
} as const;

/** Empty without the option, to be spread into a request. */
export async function approvalFor(
  { values: { approvals: path } }: Invocation,
  asked: GuardedCommand,
): Promise<{ readonly approval?: PresentedApprovals }> {
  if (path === undefined) return {};
  const { approvalRequestFor } = await import("solehold/internal");
  const { readApprovalFile } = await import("./files.ts");
  const { request, approvals } = await readApprovalFile("--approvals", path);
  const expected = approvalRequestFor(asked, request.tier, request.nonce);
  for (const field of Object.keys(COMPARED) as (keyof typeof COMPARED)[]) {
    if (expected[field] === request[field]) continue;
    throw usageFailure(
      `--approvals ${path} is for ${field} ${JSON.stringify(request[field])}, but ${JSON.stringify(expected[field])} is asked for: adjust ${COMPARED[field]}`,
    );
  }
  return { approval: { nonce: request.nonce, approvals } };
}

/** The same for a lease that this process is about to take. */
export async function approvalForAcquire(
  invocation: Invocation,
  { tenant, holder, executor }: Leases,
  name: string,
  asked: { readonly ttl?: number; readonly purpose?: Purpose },
): Promise<{ readonly approval?: PresentedApprovals }> {
  const { ttl = executor.policy.defaultTtlMs, purpose } = asked;
  const key = { tenant, name };
  const command = {
    action: "acquire",
    key,
    holder,
    ttlMs: ttl,
    ...(purpose === undefined ? {} : { purpose }),
  } as const;
  return await approvalFor(invocation, command);
}

/** `--approvals FILE`: what signers consented to, compared with what is asked for before a server sees it. */
import type { Purpose } from "solehold";
import type { PresentedApprovals } from "solehold/approvals";
import { approvalRequestFor, type GuardedCommand } from "solehold/internal";
import type { Invocation } from "../../command.ts";
import type { Connection } from "../../connection.ts";
import { usageFailure } from "../../failure.ts";
import { readApprovalFile } from "./files.ts";

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
export async function loadApproval(
  { values: { approvals: path } }: Invocation,
  command: GuardedCommand,
): Promise<{ readonly approval?: PresentedApprovals }> {
  if (path === undefined) return {};
  const { request, approvals } = await readApprovalFile("--approvals", path);
  const expected = approvalRequestFor(command, request.tier, request.nonce);
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
  { tenant, holder, executor }: Connection,
  name: string,
  { ttl = executor.policy.defaultTtlMs, ...rest }: { readonly ttl?: number; readonly purpose?: Purpose },
): Promise<{ readonly approval?: PresentedApprovals }> {
  const purpose = rest.purpose === undefined ? {} : { purpose: rest.purpose };
  const command = { action: "acquire", key: { tenant, name }, holder, ttlMs: ttl, ...purpose } as const;
  return await loadApproval(invocation, command);
}

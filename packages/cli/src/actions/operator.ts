/** What an operator does to a lease of others: revoke and break. No proof of ownership, optionally one grant only. */
import { viewOf } from "solehold";
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import type { AppliedOutcome } from "../executor.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { appliedOrThrow } from "../format/errors.ts";
import { leaseDocument } from "../format/lease.ts";
import { fenceOption, given, requiredDuration } from "../parse/option-values.ts";
import { loadApproval } from "./approvals/load-approvals.ts";

async function asOperator(
  invocation: Invocation,
  request: { readonly op: "revoke" } | { readonly op: "break"; readonly periodMs: number },
  say: (name: string, outcome: AppliedOutcome) => string,
): Promise<number> {
  const name = keyOf(invocation);
  const grant = given({ generation: fenceOption(invocation) });
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const target = { key: { tenant, name }, ...grant };
    const ttl = request.op === "break" ? { ttlMs: request.periodMs } : {};
    const approval = await loadApproval(invocation, { action: request.op, ...target, ...ttl });
    const outcome = await executor.execute({ ...request, ...target, ...approval });
    const applied = appliedOrThrow(outcome, name, "operator");
    const { decision, storeTimeMs } = applied;
    printAnswer(invocation, {
      document: () => leaseDocument(viewOf(decision.lease, storeTimeMs, executor.policy)),
      lines: () => [say(name, applied)],
    });
    return EXIT.ok;
  });
}

export async function revoke(invocation: Invocation): Promise<number> {
  return await asOperator(invocation, { op: "revoke" }, (name, { validForMs, decision }) => {
    const until = `${decision.lease.holder} may still believe in it for ${shortDuration(validForMs)}`;
    return validForMs > 0 ? `${name} is revoked; ${until}` : `${name} is revoked`;
  });
}

export async function breakLease(invocation: Invocation): Promise<number> {
  const periodMs = requiredDuration(invocation, "period", 0);
  return await asOperator(invocation, { op: "break", periodMs }, (name, { decision }) => {
    const promised = `when what ${decision.lease.holder} was promised ends`;
    return `${name} ends within ${shortDuration(periodMs)}, or ${promised}`;
  });
}

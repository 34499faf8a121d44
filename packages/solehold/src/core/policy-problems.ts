/** What is wrong with a request under a policy, before anything is known of the lease: the field, and the fix. */
import { type AcquireCommand, type ApprovalVerdict, handoffProblem, type LeaseCommand } from "./command.ts";
import { type FieldProblem, isInstant } from "./field-problem.ts";
import { MAX_INSTANT_MS, type StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";

export function policyProblem(
  command: LeaseCommand,
  now: StoreInstant,
  policy: LeasePolicy,
): FieldProblem | null {
  return (
    instantProblem(now) ??
    proofProblem(command, policy) ??
    termProblem(command, policy) ??
    (command.op === "handoff" ? handoffProblem(command, policy) : null) ??
    (command.op === "acquire" ? minHoldProblem(command, policy) : null) ??
    ruleProblem(approvalOf(command))
  );
}

/** Only commands that grant or prolong a lease, or take it from its holder, are subject to approval. */
export function approvalOf(command: LeaseCommand): ApprovalVerdict | undefined {
  return "approval" in command ? command.approval : undefined;
}

export function ttlProblem(policy: LeasePolicy): FieldProblem {
  return {
    field: "ttlMs",
    message: `must be from ${policy.minTtlMs} to ${policy.maxTtlMs} ms under this policy`,
  };
}

function proofProblem(command: LeaseCommand, policy: LeasePolicy): FieldProblem | null {
  if (policy.proof !== "generation") return null;
  const owner = command.op !== "acquire" && command.op !== "revoke" && command.op !== "break";
  return owner && command.generation === undefined
    ? { field: "generation", message: "is required under a policy that proves ownership by generation" }
    : null;
}

function termProblem(command: LeaseCommand, policy: LeasePolicy): FieldProblem | null {
  if (policy.terms === "accept" || (command.op !== "acquire" && command.op !== "renew")) return null;
  return command.term === undefined || command.term === policy.baseTerm
    ? null
    : { field: "term", message: "is not accepted under this policy: leave it out" };
}

function minHoldProblem({ holdAtLeastMs = 0 }: AcquireCommand, policy: LeasePolicy): FieldProblem | null {
  if (holdAtLeastMs === 0 || policy.release !== "delete") return null;
  return {
    field: "holdAtLeastMs",
    message: "cannot be kept under a policy that deletes records on release: leave it out",
  };
}

function instantProblem(now: unknown): FieldProblem | null {
  if (typeof now !== "object" || now === null) return { field: "now", message: "must be a store instant" };
  const { earliestMs, latestMs, stampMs } = now as StoreInstant;
  if (!isInstant(earliestMs)) return badInstant("earliestMs");
  if (!isInstant(latestMs)) return badInstant("latestMs");
  if (!isInstant(stampMs)) return badInstant("stampMs");
  return earliestMs <= latestMs ? null : { field: "now", message: "must have earliestMs <= latestMs" };
}

function badInstant(field: keyof StoreInstant): FieldProblem | null {
  return { field: `now.${field}`, message: `must be a whole number of milliseconds up to ${MAX_INSTANT_MS}` };
}

function ruleProblem(approval: ApprovalVerdict | undefined): FieldProblem | null {
  if (approval?.kind !== "rule-violated") return null;
  const { field, message } = approval;
  return { field, message };
}

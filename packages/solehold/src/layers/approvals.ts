/**
 * The approvals layer: a command under a rule goes on with what the check of its approvals found, and core decides on
 * that. An approval that led to nothing is returned, so that it can be presented again.
 */
import {
  type CallContext,
  type CommandOutcome,
  hashToken,
  type Layer,
  type LeaseExecutor,
  type LeaseRequest,
  layerOver,
  withFeature,
} from "../executor/index.ts";
import { asStoreError } from "../store/index.ts";
import type { ApprovalCheck, ApprovalFinding, GuardedCommand } from "./approval-check.ts";

export function withApprovals(check: ApprovalCheck): Layer {
  return (next) =>
    layerOver(next, {
      features: withFeature(next, "approvals"),
      execute: (request, context = {}) => {
        const command = guardedCommandOf(request, next.policy.defaultTtlMs);
        return command === null
          ? next.execute(withoutGuardedWaiter(request, check), { ...context, approval: null })
          : executeGuarded(next, check, command, request, context);
      },
    });
}

async function executeGuarded(
  next: LeaseExecutor,
  check: ApprovalCheck,
  command: GuardedCommand,
  request: LeaseRequest,
  context: CallContext,
): Promise<CommandOutcome> {
  let finding: ApprovalFinding;
  try {
    finding = await check.examine(command, request.approval, context.traceId ?? "");
  } catch (cause) {
    return {
      kind: "unsettled",
      outcome: "not-applied",
      cause: asStoreError(cause, "the approvals could not be checked", "not-applied"),
    };
  }
  const outcome = await next.execute(request, { ...context, approval: finding.verdict });
  // Should the return fail, the approval stays used: that is the safe side.
  if (outcome.kind === "refused" && finding.claim !== null)
    await check.unclaim(finding.claim).catch(() => undefined);
  return finding.verification === null ? outcome : { ...outcome, quorum: finding.verification };
}

/** Null for commands that prove ownership by a token: they need no approval. */
function guardedCommandOf(request: LeaseRequest, defaultTtlMs: number): GuardedCommand | null {
  const { key } = request;
  switch (request.op) {
    case "acquire": {
      const { holder, purpose, ttlMs = defaultTtlMs } = request;
      return {
        ...{ action: "acquire", key, holder, ttlMs },
        ...(purpose === undefined ? {} : { purpose }),
        // The token is the caller's secret: whoever repeats it repeats this attempt.
        ...(request.token === undefined ? {} : { attempt: hashToken(request.token) }),
      };
    }
    case "revoke":
    case "break": {
      const generation = request.generation === undefined ? {} : { generation: request.generation };
      const ttlMs = request.op === "break" ? { ttlMs: request.periodMs } : {};
      return { action: request.op, key, ...generation, ...ttlMs };
    }
    default:
      return null;
  }
}

/** A waiter whose acquire needs approvals is not served by somebody else's release. */
function withoutGuardedWaiter(request: LeaseRequest, check: ApprovalCheck): LeaseRequest {
  if (request.op !== "release" || request.next === undefined || !check.hasRuleFor(request.key))
    return request;
  const { next: _next, ...alone } = request;
  return alone;
}

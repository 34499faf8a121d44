/**
 * The approvals layer: a command under a rule goes on with what the check of its approvals found, and core decides on
 * that. An approval that certainly led to nothing is returned, so that it can be presented again. One approval leads to
 * one grant: the attempt that used it may be repeated, and finds or extends what it was granted.
 */
import { askedKey } from "../core/index.ts";
import {
  type AcquireRequest,
  type CallContext,
  type CommandOutcome,
  hashToken,
  type Layer,
  type LeaseExecutor,
  type LeaseRequest,
  layerOver,
  sha256,
  withFeature,
} from "../executor/index.ts";
import { asStoreError } from "../store/index.ts";
import type { ApprovalCheck, ApprovalFinding, GuardedCommand } from "./approval-check.ts";

export function withApprovals(check: ApprovalCheck): Layer {
  return (next) =>
    layerOver(next, {
      features: withFeature(next, "approvals"),
      execute: (request, context = {}) => {
        const { defaultTtlMs } = next.policy;
        if (request.op === "renew") {
          const { verdict } = check.examineRenewal(askedKey(request.key), request.ttlMs);
          return next.execute(request, { ...context, approval: verdict });
        }
        const command = guardedCommandOf(request, defaultTtlMs, context);
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
  if (ledToNothing(outcome) && finding.claim !== null)
    await check.unclaim(finding.claim).catch(() => undefined);
  const isUsedUp = outcome.kind === "refused" && outcome.decision.reason === "QUORUM_NOT_MET";
  const quorum = isUsedUp ? (finding.usedUp ?? finding.verification) : finding.verification;
  return quorum === null ? outcome : { ...outcome, quorum };
}

function ledToNothing(outcome: CommandOutcome): boolean {
  return outcome.kind === "refused" || (outcome.kind === "unsettled" && outcome.outcome === "not-applied");
}

/** Null for commands that prove ownership by a token: they need no approval. */
function guardedCommandOf(
  request: LeaseRequest,
  defaultTtlMs: number,
  { caller = "" }: CallContext,
): GuardedCommand | null {
  const { key } = request;
  switch (request.op) {
    case "acquire": {
      const { holder, purpose, ttlMs = defaultTtlMs } = request;
      return {
        ...{ action: "acquire", key, holder, ttlMs },
        ...(purpose === undefined ? {} : { purpose }),
        ...attemptOf(request, caller),
      };
    }
    case "revoke":
    case "break": {
      const generation = request.generation === undefined ? {} : { generation: request.generation };
      const ttlMs = request.op === "break" ? { ttlMs: request.periodMs } : {};
      return { action: request.op, key, ...generation, ...ttlMs, ...attemptOf(request, caller) };
    }
    default:
      return null;
  }
}

/** Token and idempotency key are the caller's secrets: a request that repeats one of them repeats this attempt. */
function attemptOf(
  { token, idempotencyKey }: Pick<AcquireRequest, "token" | "idempotencyKey">,
  caller: string,
): Pick<GuardedCommand, "attempt"> {
  if (idempotencyKey !== undefined) return { attempt: sha256("solehold-attempt", caller, idempotencyKey) };
  return token === undefined ? {} : { attempt: hashToken(token) };
}

/** A waiter whose acquire needs approvals is not served by somebody else's release. */
function withoutGuardedWaiter(request: LeaseRequest, check: ApprovalCheck): LeaseRequest {
  if (request.op !== "release" || request.next === undefined || !check.hasRuleFor(askedKey(request.key)))
    return request;
  const { next: _next, ...alone } = request;
  return alone;
}

/**
 * The check of approvals: before a lease under a rule is granted, revoked or broken, enough signers must have approved
 * exactly that request, and each approval works once.
 */

import type { ApprovalRule, ApprovalRules, GuardedAction } from "../approvals/approval-policy.ts";
import {
  type ApprovalRequest,
  type PresentedApprovals,
  type QuorumVerification,
  verifyQuorum,
} from "../approvals/index.ts";
import type { ApprovalVerdict, LeaseKey, Purpose } from "../core/index.ts";
import { DEFAULT_PURPOSE } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import type { LeaseStore } from "../store/index.ts";
import { type ApprovalClaim, UsedApprovals } from "./used-approvals.ts";

/** The part of a command that signers consent to. */
export interface GuardedCommand {
  readonly action: GuardedAction;
  readonly key: LeaseKey;
  readonly holder?: string;
  readonly purpose?: Purpose;
  readonly ttlMs?: number;
  readonly generation?: bigint;
  /** Only the caller of this very attempt can name it again: then it is a repeat and not a second use. */
  readonly attempt?: string;
}

/** What the check found. */
export interface ApprovalFinding {
  /** What stands against the command; null when nothing does. */
  readonly verdict: ApprovalVerdict | null;
  /** How the approvals were judged; null where no rule asked for any. */
  readonly verification: QuorumVerification | null;
  /** The same, should core find that this attempt has used them up before. */
  readonly usedUp?: QuorumVerification;
  /** The approvals that this command used up; null when it used none. */
  readonly claim: ApprovalClaim | null;
}

const NOT_REQUIRED: ApprovalFinding = Object.freeze({ verdict: null, verification: null, claim: null });
const NOT_LONGER: ApprovalFinding = { ...NOT_REQUIRED, verdict: { kind: "approved-ttl-only" } };

export interface ApprovalCheckOptions {
  readonly policy: ApprovalRules;
  readonly store: LeaseStore;
  readonly env: Env;
  /** The store's time. */
  readonly nowMs: () => number;
}

const NOT_MET = { verdict: { kind: "quorum-not-met" }, claim: null } as const;

/** Stands for what an operator's command does not have. */
const NONE = "-";

export class ApprovalCheck {
  readonly #options: ApprovalCheckOptions;
  readonly #uses: UsedApprovals;

  constructor(options: ApprovalCheckOptions) {
    this.#options = options;
    this.#uses = new UsedApprovals(options.store, options.env);
  }

  hasRuleFor({ tenant, name }: LeaseKey): boolean {
    return this.#options.policy.ruleFor(tenant, name) !== null;
  }

  /** Rejects with StoreError when the store cannot say what was used. */
  async examine(
    command: GuardedCommand,
    presented: PresentedApprovals | undefined,
    traceId: string,
  ): Promise<ApprovalFinding> {
    const { tenant, name } = command.key;
    const rule = this.#options.policy.ruleFor(tenant, name);
    if (rule === null) return NOT_REQUIRED;
    const violation = violationOf(rule, command);
    if (violation !== null) return { ...NOT_REQUIRED, verdict: { kind: "rule-violated", ...violation } };
    if (!rule.actions.has(command.action)) return NOT_REQUIRED;
    return await this.#verify(rule, command, presented ?? NOTHING_PRESENTED, traceId);
  }

  /** A renewal needs no approval, but it prolongs a lease by no more than was approved, nor than the rule allows. */
  examineRenewal({ tenant, name }: LeaseKey, ttlMs: number | undefined): ApprovalFinding {
    const rule = this.#options.policy.ruleFor(tenant, name);
    if (rule === null) return NOT_REQUIRED;
    // The lease's own ttl, which may be from before the rule: only the decision knows it.
    if (ttlMs === undefined)
      return { ...NOT_REQUIRED, verdict: { kind: "approved-ttl-only", maxTtlMs: rule.maxTtlMs } };
    const violation = ttlMs > rule.maxTtlMs ? ttlViolation(rule) : null;
    if (violation !== null) return { ...NOT_REQUIRED, verdict: { kind: "rule-violated", ...violation } };
    return rule.actions.has("acquire") ? NOT_LONGER : NOT_REQUIRED;
  }

  /** What led to nothing may be presented again. */
  async unclaim(claim: ApprovalClaim): Promise<void> {
    await this.#uses.unclaim(claim);
  }

  async #verify(
    rule: ApprovalRule,
    command: GuardedCommand,
    presented: PresentedApprovals,
    traceId: string,
  ): Promise<ApprovalFinding> {
    const { tenant, name } = command.key;
    const question = {
      quorum: rule.quorum,
      leaseId: `${tenant}/${name}`,
      request: approvalRequestFor(command, rule.tier, presented.nonce),
      approvals: presented.approvals,
      nowMs: this.#options.nowMs(),
      traceId,
    };
    const attempt = command.attempt ?? randomId(this.#options.env);
    const first = verifyQuorum(question);
    const ids = first.accepted.map(({ approvalId }) => approvalId);
    const { used: consumedIds, generation } = await this.#uses.usesOf(command.key, ids, attempt);
    const verification = consumedIds.size === 0 ? first : verifyQuorum({ ...question, consumedIds });
    if (!verification.passed) return { ...NOT_MET, verification };
    const { accepted } = verification;
    const claim = await this.#uses.claim(tenant, accepted, question.nowMs, attempt, generation);
    const usedUp = (): QuorumVerification => verifyQuorum({ ...question, consumedIds: new Set(ids) });
    // Another attempt used one of them between the read and the claim.
    if (claim === null) return { ...NOT_MET, verification: usedUp() };
    if (claim.usedBefore === null) return { verdict: null, verification, claim };
    const verdict = { kind: "used-before", ...claim.usedBefore } as const;
    return { verdict, verification, usedUp: usedUp(), claim };
  }
}

/** No nonce can be guessed from this: it only makes an empty presentation well-formed. */
const NOTHING_PRESENTED: PresentedApprovals = { nonce: "0".repeat(16), approvals: [] };

/** What must have been signed for this command, so that signers and service build the same bytes. */
export function approvalRequestFor(command: GuardedCommand, tier: string, nonce: string): ApprovalRequest {
  const { action, key, holder = NONE, purpose, ttlMs = 0, generation } = command;
  return {
    tenant: key.tenant,
    key: key.name,
    holder,
    purpose: action === "acquire" ? (purpose ?? DEFAULT_PURPOSE) : NONE,
    tier,
    action: generation === undefined ? action : `${action}@${generation}`,
    ttlMs,
    nonce,
  };
}

function violationOf(
  rule: ApprovalRule,
  { action, ttlMs, purpose = DEFAULT_PURPOSE }: GuardedCommand,
): { readonly field: string; readonly message: string } | null {
  if (action !== "acquire") return null;
  if (!rule.purposes.has(purpose)) {
    return { field: "purpose", message: `must be one of ${[...rule.purposes].join(", ")} for this key` };
  }
  return ttlMs !== undefined && (ttlMs < rule.minTtlMs || ttlMs > rule.maxTtlMs) ? ttlViolation(rule) : null;
}

function ttlViolation({ minTtlMs, maxTtlMs }: ApprovalRule): {
  readonly field: string;
  readonly message: string;
} {
  return { field: "ttlMs", message: `must be from ${minTtlMs} to ${maxTtlMs} ms for this key` };
}

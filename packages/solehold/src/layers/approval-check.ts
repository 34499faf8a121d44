/**
 * The guard in front of dangerous commands: before a lease under a rule is granted, revoked or broken,
 * enough signers must have approved exactly that request, and each approval works once.
 */

import type { ApprovalPolicy, ApprovalRule, GuardedAction } from "../approvals/approval-policy.ts";
import { type ApprovalRequest, type QuorumVerification, verifyQuorum } from "../approvals/index.ts";
import type { LeaseKey, Purpose } from "../core/index.ts";
import { DEFAULT_PURPOSE } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import type { PresentedApprovals } from "../executor/index.ts";
import type { LeaseStore, StoreError } from "../store/index.ts";
import { type ApprovalClaim, ApprovalUses } from "./used-approvals.ts";

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

export type GuardVerdict =
  | { readonly kind: "open" }
  /** Approved: go on, and say with `settle` whether the command took effect. */
  | { readonly kind: "approved"; readonly verification: QuorumVerification; readonly claim: ApprovalClaim }
  | { readonly kind: "outside"; readonly field: string; readonly message: string }
  | { readonly kind: "unapproved"; readonly verification: QuorumVerification }
  /** It could not be checked: nothing was done. */
  | { readonly kind: "unavailable"; readonly cause: StoreError };

export interface ApprovalGuardOptions {
  readonly policy: ApprovalPolicy;
  readonly store: LeaseStore;
  readonly env: Env;
  /** The store's time. */
  readonly nowMs: () => number;
}

/** Stands for what an operator's command does not have. */
const NONE = "-";

export class ApprovalGuard {
  readonly #options: ApprovalGuardOptions;
  readonly #uses: ApprovalUses;

  constructor(options: ApprovalGuardOptions) {
    this.#options = options;
    this.#uses = new ApprovalUses(options.store, options.env);
  }

  /** Rejects with StoreError when the store cannot say what was used. */
  async check(
    command: GuardedCommand,
    presented: PresentedApprovals | undefined,
    traceId: string,
  ): Promise<GuardVerdict> {
    const { tenant, name } = command.key;
    const rule = this.#options.policy.ruleFor(tenant, name);
    if (rule === null) return { kind: "open" };
    const outside = outsideOf(rule, command);
    if (outside !== null) return { kind: "outside", ...outside };
    if (!rule.actions.has(command.action)) return { kind: "open" };
    return await this.#verify(rule, command, presented ?? NOTHING_PRESENTED, traceId);
  }

  /** What led to nothing may be presented again. */
  async withdraw(verdict: GuardVerdict): Promise<void> {
    if (verdict.kind === "approved") await this.#uses.giveBack(verdict.claim);
  }

  async #verify(
    rule: ApprovalRule,
    command: GuardedCommand,
    presented: PresentedApprovals,
    traceId: string,
  ): Promise<GuardVerdict> {
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
    const consumedIds = await this.#uses.usedAmong(tenant, ids, attempt);
    const verification = consumedIds.size === 0 ? first : verifyQuorum({ ...question, consumedIds });
    if (!verification.passed) return { kind: "unapproved", verification };
    const claim = await this.#uses.claim(tenant, verification.accepted, question.nowMs, attempt);
    if (claim !== null) return { kind: "approved", verification, claim };
    // Somebody used one of them between the look and the claim.
    const lost = verifyQuorum({ ...question, consumedIds: new Set(ids) });
    return { kind: "unapproved", verification: lost };
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

function outsideOf(
  rule: ApprovalRule,
  { action, ttlMs, purpose = DEFAULT_PURPOSE }: GuardedCommand,
): { readonly field: string; readonly message: string } | null {
  if (action !== "acquire") return null;
  if (!rule.purposes.has(purpose)) {
    return { field: "purpose", message: `must be one of ${[...rule.purposes].join(", ")} for this key` };
  }
  if (ttlMs !== undefined && (ttlMs < rule.minTtlMs || ttlMs > rule.maxTtlMs)) {
    return { field: "ttlMs", message: `must be from ${rule.minTtlMs} to ${rule.maxTtlMs} ms for this key` };
  }
  return null;
}

/**
 * Where used approvals are remembered. This layer only names what the service must keep, because the memory
 * has to be durable and to be written in the same step as the decision that it allows.
 */
export interface ApprovalUse {
  readonly tenant: string;
  /** `approvalId`s of the accepted approvals. */
  readonly approvalIds: readonly string[];
  /** The attempt that uses them. A retry of the same attempt is not a replay; any other is. */
  readonly attemptId: string;
  /**
   * The latest `notAfterMs` among them. From then on the window refuses them and they may be forgotten, but
   * only by the same clock that verifies: one that could go back would let a forgotten approval in again.
   */
  readonly forgetAfterMs: number;
}

export type ApprovalUseOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly replayedIds: readonly string[] };

export interface ApprovalLedger {
  /** Marks all ids as used by this attempt, or none of them if another attempt used any. Durable. */
  consume(use: ApprovalUse): Promise<ApprovalUseOutcome>;
}

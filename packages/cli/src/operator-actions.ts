/** What revoke and break have in common: no proof of ownership, optionally one grant only. */
import {
  type CommandOutcome,
  type LeaseExecutor,
  type LeaseKey,
  type PresentedApprovals,
  viewOf,
} from "solehold";
import { approvalFor } from "./approvals/present.ts";
import type { Invocation } from "./command.ts";
import { keyOf, withLeases } from "./connection.ts";
import { EXIT } from "./exit-codes.ts";
import { appliedOrThrow } from "./outcomes.ts";
import { leaseDocument } from "./text/lease.ts";
import { printAnswer } from "./text/print.ts";
import { fenceOption } from "./values.ts";

export interface OperatorAction {
  /** What signers would have to approve. */
  readonly asks: { readonly action: "revoke" | "break"; readonly ttlMs?: number };
  readonly send: (
    executor: LeaseExecutor,
    target: {
      readonly key: LeaseKey;
      readonly generation?: bigint;
      readonly approval?: PresentedApprovals;
    },
  ) => Promise<CommandOutcome>;
  readonly say: (name: string, outcome: Extract<CommandOutcome, { kind: "applied" }>) => string;
}

export async function actAsOperator(invocation: Invocation, action: OperatorAction): Promise<number> {
  const name = keyOf(invocation);
  const generation = fenceOption(invocation);
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const target = { key: { tenant, name }, ...(generation === null ? {} : { generation }) };
    const approval = await approvalFor(invocation, { ...target, ...action.asks });
    const outcome = await action.send(executor, { ...target, ...approval });
    const applied = appliedOrThrow(outcome, name, "operator");
    printAnswer(invocation, {
      document: () => leaseDocument(viewOf(applied.decision.lease, applied.storeTimeMs, executor.policy)),
      lines: () => [action.say(name, applied)],
    });
    return EXIT.ok;
  });
}

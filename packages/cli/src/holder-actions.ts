/** What renew, release, use and handoff have in common: proof of the grant in, the lease's new state out. */
import { type CommandOutcome, type LeaseExecutor, type LeaseKey, viewOf } from "solehold";
import type { Invocation } from "./command.ts";
import { keyOf, withLeases } from "./connection.ts";
import { EXIT } from "./exit-codes.ts";
import { appliedOrThrow } from "./outcomes.ts";
import { leaseDocument } from "./text/lease.ts";
import { printAnswer } from "./text/print.ts";
import { tokenOption } from "./values.ts";

type Applied = Extract<CommandOutcome, { kind: "applied" }>;

export interface OwnerProof {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly token: string;
}

export interface HolderAction {
  readonly send: (executor: LeaseExecutor, owner: OwnerProof) => Promise<CommandOutcome>;
  /** The answer for people. */
  readonly say: (name: string, outcome: Applied) => string;
}

export async function actAsHolder(invocation: Invocation, action: HolderAction): Promise<number> {
  const name = keyOf(invocation);
  const token = tokenOption(invocation);
  return await withLeases(invocation, "user", async ({ executor, tenant, holder }) => {
    const outcome = await action.send(executor, { key: { tenant, name }, holder, token });
    const applied = appliedOrThrow(outcome, name, "holder");
    printAnswer(invocation, {
      document: () => leaseDocument(viewOf(applied.decision.lease, applied.storeTimeMs, executor.policy)),
      lines: () => [action.say(name, applied)],
    });
    return EXIT.ok;
  });
}

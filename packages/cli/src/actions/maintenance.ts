/** What an operator does to records: `collect` deletes those that ended long ago, `repair` replaces a damaged one. */
import { CorruptRecordError, type LeaseKey } from "solehold";
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import type { Executor } from "../executor.ts";
import { EXIT, errorFailure, type Failure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { unsignedOption } from "../parse/option-values.ts";
import { confirm } from "./confirm.ts";

export async function collect(invocation: Invocation): Promise<number> {
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const { scanned, deleted } = await executor.collect(tenant);
    printAnswer(invocation, {
      document: () => ({ tenant, scanned, deleted }),
      lines: () => [`tenant ${tenant}: ${deleted} of ${scanned} records deleted`],
    });
    return EXIT.ok;
  });
}

/** Looks, says what will happen, asks, replaces. */
export async function repair(invocation: Invocation): Promise<number> {
  const name = keyOf(invocation);
  const given = unsignedOption(invocation, "generation");
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const key = { tenant, name };
    const damage = await damageOf(executor, key);
    if (damage === null) throw notDamaged(name, "it can be read, or there is no such record");
    const generation = given ?? executor.repairGeneration();
    const floor = generation === undefined ? "all that were granted before" : `generation ${generation}`;
    const what = [
      `The record of ${name} (version ${damage.version}) cannot be read: ${damage.detail}.`,
      "Repairing replaces it. Who held it, and until when, is lost; from then on anybody can acquire it,",
      `with fences above ${floor}. Make sure that its last holder has stopped.`,
    ];
    if (!(await confirm(invocation, what, "Repair it?")))
      throw errorFailure("NOT_REPAIRED", "not repaired", { key: name });
    const isRepaired = await executor.repair(key, generation);
    if (!isRepaired) throw notDamaged(name, "another repair was faster: look at it with 'solehold get'");
    printAnswer(invocation, {
      document: () => ({
        key: name,
        tenant,
        repaired: true,
        generation: generation === undefined ? null : String(generation),
      }),
      lines: () => [`${name} is repaired: it can be acquired, with fences above ${floor}`],
    });
    return EXIT.ok;
  });
}

/** How a damaged record is damaged; null when it can be read, or there is none. */
async function damageOf(executor: Executor, key: LeaseKey): Promise<CorruptRecordError | null> {
  try {
    await executor.read(key);
    return null;
  } catch (error) {
    if (error instanceof CorruptRecordError) return error;
    throw error;
  }
}

function notDamaged(name: string, why: string): Failure {
  return errorFailure("NOT_DAMAGED", `${name} is not damaged: ${why}`, { key: name });
}

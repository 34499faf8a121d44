/** What an operator does to records: `collect` deletes those that ended long ago, `repair` replaces a damaged one. */

import { type LeaseExecutor, type LeaseKey, StoreExecutor } from "solehold";
import { CorruptRecordError, collectionObstacle, repairGeneration } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { EXIT, errorFailure, type Failure, usageFailure } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { unsignedOption } from "../parse/option-values.ts";
import { confirm } from "./confirm.ts";

export async function collect(invocation: Invocation): Promise<number> {
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const obstacle = executor instanceof StoreExecutor ? collectionObstacle(executor.store) : null;
    if (obstacle !== null) throw usageFailure(`ended records are kept for ever: ${obstacle}`);
    const { scanned, deleted } = await maintenanceOf(executor).collect(tenant);
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
    const generation = given ?? generationOf(executor);
    const floor = generation === undefined ? "all that were granted before" : `generation ${generation}`;
    const what = [
      `The record of ${name} (version ${damage.version}) cannot be read: ${damage.detail}.`,
      "Repairing replaces it. Who held it, and until when, is lost; from then on anybody can acquire it,",
      `with fences above ${floor}. Make sure that its last holder has stopped.`,
    ];
    if (!(await confirm(invocation, what, "Repair it?")))
      throw errorFailure("NOT_REPAIRED", "not repaired", { key: name });
    const isRepaired = await maintenanceOf(executor).repair(key, generation);
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
async function damageOf(executor: LeaseExecutor, key: LeaseKey): Promise<CorruptRecordError | null> {
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

/** By the store's time, above all that were granted; undefined where a server chooses it. */
function generationOf(executor: LeaseExecutor): bigint | undefined {
  if (!(executor instanceof StoreExecutor)) return undefined;
  const generation = repairGeneration(executor);
  if (generation !== null) return generation;
  throw usageFailure(
    `--generation is missing: the ${executor.store.name} store has no clock, so give a number no lower than any generation that was granted under KEY (audit entries and logs have the fences)`,
  );
}

/** What executors over a store and over a server can do beyond commands. */
interface Maintenance {
  collect(tenant: string): Promise<{ readonly scanned: number; readonly deleted: number }>;
  repair(key: LeaseKey, generation?: bigint): Promise<boolean>;
}

function maintenanceOf(executor: LeaseExecutor): Maintenance {
  const candidate = executor as LeaseExecutor & Partial<Maintenance>;
  if (candidate.collect !== undefined && candidate.repair !== undefined) return candidate as Maintenance;
  throw usageFailure("this address can neither collect nor repair: use --store or --server");
}

/** The steps of `repair`: look, say what will happen, ask, replace. */
import type { CorruptRecordError } from "solehold";
import type { Invocation } from "./command.ts";
import { keyOf, withLeases } from "./connection.ts";
import { EXIT } from "./exit-codes.ts";
import { Failure, usageFailure } from "./failure.ts";
import { damageOf, generationOf, maintenanceOf } from "./maintenance.ts";
import { printAnswer } from "./text/print.ts";
import { generationOption } from "./values.ts";

export async function repair(invocation: Invocation): Promise<number> {
  const name = keyOf(invocation);
  const given = generationOption(invocation);
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const key = { tenant, name };
    const damage = await damageOf(executor, key);
    if (damage === null) throw notDamaged(name, "it can be read, or there is no such record");
    const generation = generationOf(executor, given);
    await confirm(invocation, name, damage, generation);
    const isRepaired = await maintenanceOf(executor).repair(key, generation);
    if (!isRepaired) throw notDamaged(name, "somebody else was faster: look at it with 'solehold get'");
    printAnswer(invocation, {
      document: () => ({ key: name, tenant, repaired: true, generation: shown(generation) }),
      lines: () => [`${name} is repaired: it can be acquired, with ${fencesIn(generation)}`],
    });
    return EXIT.ok;
  });
}

async function confirm(
  { io, flags }: Invocation,
  name: string,
  { version, detail }: CorruptRecordError,
  generation: bigint | undefined,
): Promise<void> {
  io.stderr.write(
    [
      `The record of ${name} (version ${version}) cannot be read: ${detail}.`,
      "Repairing replaces it. Who held it, and until when, is lost; from then on anybody can acquire it,",
      `with ${fencesIn(generation)}. Make sure that its last holder has stopped.`,
      "",
    ].join("\n"),
  );
  if (flags.has("yes")) return;
  const answer = await io.ask("Repair it? Type 'yes': ");
  if (answer === null) throw usageFailure("nobody is there to be asked: read the above, and pass --yes");
  if (answer.trim() !== "yes")
    throw new Failure("not repaired", { exitCode: EXIT.error, code: "NOT_REPAIRED", facts: { key: name } });
}

function notDamaged(name: string, why: string): Failure {
  return new Failure(`${name} is not damaged: ${why}`, {
    exitCode: EXIT.error,
    code: "NOT_DAMAGED",
    facts: { key: name },
  });
}

function fencesIn(generation: bigint | undefined): string {
  return `fences above ${generation === undefined ? "all that were granted before" : `generation ${generation}`}`;
}

function shown(generation: bigint | undefined): string | null {
  return generation === undefined ? null : String(generation);
}

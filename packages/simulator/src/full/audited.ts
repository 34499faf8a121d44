/** What the audit of a run has in the end, put together for its oracle: a trail for each life, or for each machine. */
import { MOST_ENTRIES, type Trails } from "../audit/trails.ts";
import type { AuditedTrail } from "../oracles/audit.ts";
import type { Attempts } from "./attempts.ts";
import type { Backend } from "./backend.ts";

export interface ServiceLife {
  readonly backend: Backend;
  readonly attempts: Attempts;
}

/** Memory dies with its process; files are those of all lives of a machine. */
export async function auditedTrails(
  lives: readonly ServiceLife[],
  trails: Trails | null,
): Promise<readonly AuditedTrail[]> {
  if (trails === null) return await Promise.all(lives.map(inMemory));
  const machines = [...new Set(lives.map(({ backend }) => backend.env.machine.name))];
  return await Promise.all(
    machines.map(async (name) => ({
      name,
      entries: await trails.entriesOf(name),
      lives: lives.filter(({ backend }) => backend.env.machine.name === name).map(audited),
    })),
  );
}

async function inMemory(life: ServiceLife): Promise<AuditedTrail> {
  const entries = await life.backend.audit.query({ limit: MOST_ENTRIES });
  return { name: life.backend.name, entries, lives: [audited(life)] };
}

function audited({ backend, attempts }: ServiceLife): AuditedTrail["lives"][number] {
  const { name, env } = backend;
  return { name, diedMs: env.diedMs, ...attempts };
}

/** The server's audit trail: in files that survive it, or in memory for trials and tests. */

import {
  type AuditTrail,
  type AuditVerification,
  encodeEntry,
  FileAuditTrail,
  MemoryAuditTrail,
  type VerifyOptions,
  verifyAudit,
} from "solehold/internal";
import { withGapEntries } from "./audit-gaps.ts";
import type { ServerConfig } from "./config.ts";

export type KnownHeads = Pick<VerifyOptions, "anchor" | "startAfter">;

export interface AuditLog {
  readonly trail: AuditTrail;
  /** Proves everything that is safe by now. */
  verify(options?: KnownHeads): Promise<AuditVerification>;
  /** Entries accepted and not yet on the disk. */
  lag(): number;
  /** Entries lost because too many waited. */
  dropped(): number;
}

const MEMORY_ENTRIES = 10_000;

/** A request must not fail because its name is too long for the trail: what does not fit is cut. */
const invalidEvents = "sanitise";

export async function openAudit({
  audit,
  dataDir,
}: Pick<ServerConfig, "audit" | "dataDir">): Promise<AuditLog> {
  if (audit === "memory") return memoryAudit();
  const folder = `${dataDir}/audit`;
  const file = await FileAuditTrail.open({ folder, durability: audit, invalidEvents });
  const trail = withGapEntries(file);
  return {
    trail,
    verify: async (heads = {}) => {
      // What waits in the background belongs to the proof, too; where the disk refuses it, the rest is proven.
      await trail.flush().catch(() => undefined);
      return await verifyAudit(folder, { ...heads, throughSequence: trail.head().sequence });
    },
    lag: () => file.lag,
    dropped: () => file.dropped,
  };
}

function memoryAudit(): AuditLog {
  const trail = new MemoryAuditTrail({ capacity: MEMORY_ENTRIES, invalidEvents });
  return {
    trail,
    verify: async (heads = {}) => {
      const entries = await trail.query({ limit: MEMORY_ENTRIES });
      const [first] = entries;
      const before =
        first === undefined ? {} : { startAfter: { sequence: first.sequence - 1, hash: first.previousHash } };
      return await verifyAudit(entries.map(encodeEntry), { ...before, ...heads });
    },
    lag: () => 0,
    dropped: () => trail.dropped,
  };
}

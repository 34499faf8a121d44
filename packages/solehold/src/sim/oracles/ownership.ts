/**
 * RenewalRequiresOwnership, and release touches only its own grant: whoever prolongs, releases or hands on
 * a grant is the process that was given it, or one that adopted it.
 */
import { keyId, recordFence } from "../../core/index.ts";
import type { AppliedWrite } from "../store/engine.ts";
import { isGrant, type Oracle, type Scene } from "./oracle.ts";

export interface OwnershipOracle extends Oracle {
  /** Another process got the grant's secret, by transfer. */
  adopted(grantId: string, process: string): void;
}

export function ownership(scene: Scene): OwnershipOracle {
  const name = "ownership";
  const owners = new Map<string, Set<string>>();
  return {
    name,
    adopted: (grantId, process) => void owners.get(grantId)?.add(process),
    onWrite: (write) => {
      const { before, after, by } = write;
      if (after === null || after.key.name.startsWith("$")) return;
      const grantId = `${keyId(after.key)}@${recordFence(after)}`;
      if (isGrant(write)) {
        owners.set(grantId, new Set([by]));
        return;
      }
      if (before === null || !isOwnersAct(write)) return;
      const owner = owners.get(grantId);
      if (owner !== undefined && !owner.has(by))
        scene.fail(name, `${by} changed ${grantId}, which belongs to ${[...owner].join(", ")}`);
    },
  };
}

/** Anybody may revoke, break or repair; only the owner prolongs and releases. */
function isOwnersAct({ before, after }: AppliedWrite): boolean {
  if (before === null || after === null || after.note === "repaired") return false;
  return after.renewals > before.renewals || (after.state === "released" && before.state !== "released");
}

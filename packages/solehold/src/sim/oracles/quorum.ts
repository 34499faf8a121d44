/**
 * A dangerous grant has its quorum: as many grants of the guarded key to a holder as that holder presented
 * consents of enough distinct, known signers, at most; each consent works once.
 */
import { keyId, type LeaseKey } from "../../core/index.ts";
import { isGrant, type Oracle, type Scene } from "./oracle.ts";

export interface QuorumOracle extends Oracle {
  /** A holder presents a consent that suffices. */
  approved(holder: string): void;
}

export function quorum(scene: Scene, guarded: LeaseKey): QuorumOracle {
  const name = "quorum";
  const left = new Map<string, number>();
  return {
    name,
    approved: (holder) => void left.set(holder, (left.get(holder) ?? 0) + 1),
    onWrite: (write) => {
      const { after } = write;
      if (after === null || keyId(after.key) !== keyId(guarded) || !isGrant(write)) return;
      // A store that forgets what it acknowledged forgets what was used, too.
      if (!scene.expectations.fencesGrow) return;
      const consents = left.get(after.holder) ?? 0;
      if (consents === 0) scene.fail(name, `${after.holder} got ${keyId(guarded)} without enough signers`);
      left.set(after.holder, consents - 1);
      scene.sometimes("a dangerous lease was granted to enough signers");
    },
    onCallEnd: ({ outcome }) => {
      if (outcome?.kind === "refused" && outcome.decision.reason === "QUORUM_NOT_MET")
        scene.sometimes("a dangerous lease was refused to too few signers");
    },
  };
}

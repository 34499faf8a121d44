/**
 * A dangerous grant has its quorum: as many attempts of a holder end in a grant of the guarded key as that
 * holder presented consents of enough distinct, known signers, at most.
 *
 * An attempt is known by its secret. A request that arrives twice (sent again, or doubled on its way) is one
 * attempt, and is granted anew if its first grant has ended by then: the consent covers both.
 */
import { keyId, type LeaseKey } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

export interface QuorumOracle extends Oracle {
  /** A holder presents a consent that suffices. */
  approved(holder: string): void;
}

export function quorum(context: OracleContext, guarded: LeaseKey): QuorumOracle {
  const name = "quorum";
  const left = new Map<string, number>();
  const attempts = new Set<string>();
  return {
    name,
    approved: (holder) => void left.set(holder, (left.get(holder) ?? 0) + 1),
    onWrite: (write) => {
      const { after } = write;
      if (after === null || keyId(after.key) !== keyId(guarded) || !isGrant(write)) return;
      // A store that forgets what it acknowledged forgets what was used, too.
      if (!context.expectations.fencesGrow) return;
      if (attempts.has(after.tokenHash)) return;
      attempts.add(after.tokenHash);
      const consents = left.get(after.holder) ?? 0;
      if (consents === 0) context.fail(name, `${after.holder} got ${keyId(guarded)} without enough signers`);
      left.set(after.holder, consents - 1);
      context.sometimes("a dangerous lease was granted to enough signers");
    },
    onCallEnd: ({ outcome }) => {
      if (outcome?.kind === "refused" && outcome.decision.reason === "QUORUM_NOT_MET")
        context.sometimes("a dangerous lease was refused to too few signers");
    },
  };
}

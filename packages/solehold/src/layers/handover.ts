/**
 * A release and the grant to who waits, in one write: what the release would leave behind is what the next acquire is
 * decided on, and only the result of both is written, on condition that the snapshot still stands. Both decisions are
 * core's, one after the other, as if the second had found in the store what the first had written there.
 *
 * Either both happened or neither did. Where the second is not granted on what the first leaves (a handoff to somebody
 * else, a store that lost writes, a policy that deletes what is released), the release is written alone.
 */
import type { AcquireCommand, Decided, GrantedDecision } from "../core/index.ts";
import type { AppliedOutcome, CommandOutcome, Decide, IsIntact } from "../executor/index.ts";

export interface HandedOver {
  readonly released: CommandOutcome;
  /** Null when it was not tried: the one who waits has to ask by itself. */
  readonly granted: CommandOutcome | null;
}

interface Pair {
  readonly released: GrantedDecision;
  readonly granted: GrantedDecision;
}

export class HandOver {
  readonly #next: AcquireCommand;
  readonly #token: string;
  /** What both decisions were, by the nonce of the write that carried them. */
  readonly #pairs = new Map<string, Pair>();

  /** `token` is that of the grant to come. */
  constructor(next: AcquireCommand, token: string) {
    this.#next = next;
    this.#token = token;
  }

  /** What takes the place of `decide` while the release is carried out. */
  deciding(decide: Decide, isIntact: IsIntact): Decide {
    return (release, snapshot, now, policy) => {
      const first = decide(release, snapshot, now, policy);
      if (!isNewWrite(first)) return first;
      // One write has one nonce: whoever finds it in the store knows that both were done.
      const acquire: AcquireCommand = { ...this.#next, nonce: release.nonce };
      if (!isIntact(acquire, snapshot, now)) return first;
      const second = decide(acquire, { ...snapshot, record: first.effect.record }, now, policy);
      if (!isNewWrite(second)) return first;
      this.#pairs.set(release.nonce, { released: first.decision, granted: second.decision });
      return { ...first, effect: second.effect };
    };
  }

  /** From how the release ended to how both did. */
  outcomes(released: CommandOutcome): HandedOver {
    if (released.kind === "applied") return this.#applied(released);
    // Perhaps done, perhaps not: then that is so for both.
    const isUnknown = released.kind === "unsettled" && released.outcome === "unknown" && this.#pairs.size > 0;
    return { released, granted: isUnknown ? released : null };
  }

  #applied(outcome: AppliedOutcome): HandedOver {
    const { lease } = outcome.decision;
    const pair = this.#pairs.get(lease.nonce);
    if (pair === undefined) return { released: outcome, granted: null };
    return {
      released: decidedAs(outcome, pair.released),
      granted: { ...decidedAs(outcome, pair.granted), token: this.#token },
    };
  }
}

function decidedAs(outcome: AppliedOutcome, decision: GrantedDecision): AppliedOutcome {
  const validForMs = Math.max(0, decision.lease.expiresAtMs - outcome.storeTimeMs);
  return { ...outcome, decision, validForMs };
}

type NewWrite = Decided & {
  readonly decision: GrantedDecision;
  readonly effect: Extract<Decided["effect"], { kind: "write" }>;
};

/** Granted, and not only repeated. */
function isNewWrite(decided: Decided): decided is NewWrite {
  const { decision, effect } = decided;
  return decision.kind === "granted" && !decision.replayed && effect.kind === "write";
}

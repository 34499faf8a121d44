/**
 * Closed periods are kept: nobody gets a key before the minimum hold of its last grant is over, released or not, nor
 * before the delay after its expiry is. A revoke opens the key; a handoff is for its successor.
 *
 * Not asked for where a deadline of the store's cannot be measured; see `reservations`.
 */
import { keyId } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

/** When the record was stamped, by the store's true clock, and as it says itself. */
interface Stamp {
  readonly writtenAtMs: number;
  readonly stampMs: number;
}

interface Closed {
  /** By the record of the grant, whatever was written since. */
  readonly minHoldUntilMs: number;
  readonly granted: Stamp;
  /** The last one. */
  readonly written: Stamp;
}

export function closedPeriods(context: OracleContext): Oracle {
  const name = "closed-periods";
  const closed = new Map<string, Closed>();
  const { driftRatio, tickMs, entry } = context.config;
  // A release may grant the lease to the next waiter with the same write, at a server even long after the expiry.
  const throughServers = entry === "server";
  /** An observer counts the whole length from its own first sight, on a clock that may run fast. */
  const keptUntil = (untilMs: number, { writtenAtMs, stampMs }: Stamp): number =>
    Math.min(untilMs, writtenAtMs + (untilMs - stampMs) / (1 + driftRatio) ** 2 - tickMs);
  return {
    name,
    onWrite: (write) => {
      const { before, after, storeMs } = write;
      if (after === null) return;
      const id = keyId(after.key);
      const known = closed.get(id);
      if (isGrant(write)) {
        if (known !== undefined && before !== null && isMeasurable(context)) {
          const { granted, written } = known;
          const hasExpired = before.state === "held" && storeMs >= keptUntil(before.expiresAtMs, written);
          const wasTakenOver = hasExpired && before.holder !== after.holder && !throughServers;
          const delayedUntilMs = wasTakenOver ? before.expiresAtMs + before.lockDelayMs : 0;
          const heldUntilMs = keptUntil(known.minHoldUntilMs, granted);
          if (storeMs < Math.max(heldUntilMs, keptUntil(delayedUntilMs, written)))
            context.fail(name, `${after.holder} took ${id}, which was closed`);
        }
      } else if (after.state === "released" && (after.minHoldUntilMs ?? 0) > storeMs) {
        context.sometimes("a lease was released before its minimum hold was over");
      }
      const isOpen = after.state === "revoked" || after.handoff !== null;
      const minHoldUntilMs = isGrant(write) ? after.minHoldUntilMs : known?.minHoldUntilMs;
      const stampMs = after.endedAtMs ?? after.renewedAtMs;
      // A break or a resume writes the record without a new stamp.
      const isStamped = stampMs !== known?.written.stampMs;
      const written = known !== undefined && !isStamped ? known.written : { writtenAtMs: storeMs, stampMs };
      const granted = known === undefined || isGrant(write) ? written : known.granted;
      closed.set(id, { minHoldUntilMs: isOpen ? 0 : (minHoldUntilMs ?? 0), granted, written });
    },
    onCallEnd: ({ request, outcome }) => {
      if (request.op !== "acquire" || outcome?.kind !== "applied" || outcome.decision.replayed) return;
      const { lease } = outcome.decision;
      const { holdAtLeastMs = 0 } = request;
      const isKept = (lease.minHoldUntilMs ?? 0) >= lease.grantedAtMs + holdAtLeastMs;
      // A lease that is being broken is found as it is.
      if (holdAtLeastMs > 0 && lease.state === "held" && lease.breakAtMs === null && !isKept)
        context.fail(name, `a grant of ${keyId(lease.key)} forgot its minimum hold`);
    },
  };
}

function isMeasurable({ expectations, config }: OracleContext): boolean {
  return expectations.recordsLast && !config.faults.has("clock-jump");
}

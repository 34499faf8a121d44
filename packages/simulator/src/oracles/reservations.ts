/**
 * Reservations are kept: until its deadline only the successor gets a lease that was handed on, and only the waiter
 * with the ticket one that was kept for it; no renewal outruns a break.
 *
 * A deadline is not asked for where rates are out of bounds (an observer may count it at
 * nine times the store's speed), where the store's clock jumps (a deadline passes early by it, or is counted
 * by observation instead), nor where the store forgets. A break is compared with what stands in the record,
 * so it holds everywhere.
 */
import { keyId, reservedUntil } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

export function reservations(context: OracleContext): Oracle {
  const name = "reservations";
  /** When the reservation was written, by the store's true clock. */
  const reservedAtMs = new Map<string, number>();
  return {
    name,
    onWrite: (write) => {
      const { before, after, storeMs } = write;
      if (before === null || after === null) return;
      const id = keyId(after.key);
      if (reservedUntil(after) !== null && after.state === "released") reservedAtMs.set(id, storeMs);
      const deadlineMs = reservedUntil(before);
      if (isGrant(write) && deadlineMs !== null && before.endedAtMs !== null) {
        const { handoff, reservation } = before;
        // An observer counts the whole length from its own first sight, on a clock that may run fast; the
        // deadline itself was written generously.
        const { driftRatio, tickMs } = context.config;
        const lengthMs = (deadlineMs - before.endedAtMs) / (1 + driftRatio) ** 2 - tickMs;
        const keptUntilMs = Math.min(deadlineMs, (reservedAtMs.get(id) ?? storeMs) + lengthMs);
        const measurable = context.expectations.recordsLast && !context.config.faults.has("clock-jump");
        const isForIt =
          handoff === null ? reservation?.ticket === after.ticket : handoff.successor === after.holder;
        if (measurable && !isForIt && storeMs < keptUntilMs) {
          const whom = handoff?.successor ?? `the ticket ${reservation?.ticket}`;
          context.fail(name, `${after.holder} took ${id}, which was kept for ${whom}`);
        }
      }
      const limitMs = before.breakAtMs;
      const renewed = !isGrant(write) && after.renewals > before.renewals;
      if (renewed && limitMs !== null && after.expiresAtMs > Math.max(limitMs, before.expiresAtMs))
        context.fail(name, `a renewal of ${id} reached past its break`);
    },
  };
}

/**
 * LeaseUniqueness: no two may act under one lease at the same instant of the world's time. Asked wherever
 * rates are within bounds and the store keeps what it acknowledged; see `expectationsOf` for the rest.
 *
 * A grant that is written over one with half of its time left, whose holder believes in it, is such a case before the new
 * one hears of its own. (A release that grants the lease to the next waiter with the same write comes from a holder that has
 * stopped.) Not asked of a store without a clock, whose records do not say how much time is left.
 */
import { keyId, recordFence } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

export function mutualBelief(context: OracleContext): Oracle {
  const name = "mutual-belief";
  const { skewMs, granularityMs, storeClock } = context.config;
  /** Until when, by the world's time, no clock within bounds can say that the record has expired. */
  const surelyAlive = new Map<string, number>();
  return {
    name,
    onWrite: (write) => {
      const { before, after, by, key, storeMs } = write;
      const id = keyId(key);
      const livesUntilMs = surelyAlive.get(id) ?? 0;
      const leftMs = (after?.expiresAtMs ?? 0) - storeMs - skewMs - granularityMs;
      surelyAlive.set(id, context.nowMs() + leftMs / 2);
      if (!context.expectations.recordsLast || storeClock === "none") return;
      if (before?.state !== "held" || after === null || !isGrant(write)) return;
      if (context.nowMs() >= livesUntilMs) return;
      const [old, fresh] = [recordFence(before), recordFence(after)];
      const isBelieved = context.believers
        .get(id)
        ?.some((each) => each.fence === old && !each.frozen() && !each.ended() && each.believes());
      if (isBelieved !== true) return;
      context.fail(
        name,
        `${by} was granted fence ${fresh} of ${id} over ${before.holder}'s live fence ${old}`,
      );
    },
    afterEvent: () => {
      if (!context.expectations.exclusive) return;
      for (const [key, believers] of context.believers) {
        if (believers.length < 2) continue;
        // Who is frozen cannot act; its belief is looked at when it can.
        const sure = believers.filter((each) => !each.frozen() && !each.ended() && each.believes());
        if (sure.length < 2) continue;
        const who = sure.map((each) => `${each.who} (fence ${each.fence})`).join(" and ");
        context.fail(name, `${who} both believe that they hold ${key}`);
      }
    },
  };
}

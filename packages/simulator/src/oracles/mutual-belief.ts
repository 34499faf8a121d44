/**
 * LeaseUniqueness: no two may act under one lease at the same instant of the world's time. Asked wherever
 * rates are within bounds and the store keeps what it acknowledged; see `expectationsOf` for the rest.
 */
import type { Oracle, OracleContext } from "./oracle.ts";

export function mutualBelief(context: OracleContext): Oracle {
  const name = "mutual-belief";
  return {
    name,
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

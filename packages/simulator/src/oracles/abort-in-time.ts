/** A holder's signal aborts no later than its lease ends, even if the store never answers again. */
import type { Oracle, OracleContext } from "./oracle.ts";

export function abortInTime(context: OracleContext): Oracle {
  const name = "abort-in-time";
  return {
    name,
    afterEvent: () => {
      for (const believers of context.believers.values()) {
        for (const believer of believers) {
          if (believer.ended() || !believer.overdue()) continue;
          context.fail(name, `${believer.who} had no signal that fence ${believer.fence} is over`);
        }
      }
    },
  };
}

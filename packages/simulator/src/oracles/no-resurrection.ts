/**
 * A lease that is over stays over: a renewal needs a lease that was held, and not expired by the time that
 * the renewal itself wrote down. (A renewal that was decided in time may land late; that harms nobody.)
 *
 * That a released or revoked lease never comes back is asked everywhere. The time is not asked where the
 * writer cannot know it: it has only its own wall clock (a store without a clock), or an estimate that rates
 * out of bounds or a jump have made worthless. A store that judges by its own clock is always asked.
 */
import { keyId, recordFence } from "solehold/internal";
import type { Oracle, OracleContext } from "./oracle.ts";

export function noResurrection(context: OracleContext): Oracle {
  const name = "no-resurrection";
  return {
    name,
    onWrite: ({ before, after }) => {
      if (before === null || after === null || after.key.name.startsWith("$")) return;
      if (recordFence(before) !== recordFence(after) || after.state !== "held") return;
      const fence = recordFence(after);
      const id = keyId(after.key);
      const { storeClock } = context.config;
      const clocked = storeClock === "exact" || (storeClock === "reply" && context.expectations.recordsLast);
      if (before.state !== "held")
        context.fail(name, `${before.state} lease ${id}@${fence} came back to life`);
      else if (clocked && after.renewals > before.renewals && after.renewedAtMs >= before.expiresAtMs)
        context.fail(
          name,
          `${id}@${fence} was renewed ${after.renewedAtMs - before.expiresAtMs} ms after it had expired`,
        );
    },
  };
}

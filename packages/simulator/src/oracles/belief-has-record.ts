/**
 * BeliefConsistency: who believes finds its own grant in the store, unreleased and unexpired. The store's
 * true clock is asked, not anybody's estimate of it. A store without a clock is not asked for the expiry: its
 * records are stamped by the wall clocks of their writers.
 */

import { recordFence } from "solehold/internal";
import { damagesRecords } from "../config.ts";
import type { Believer, Oracle, OracleContext } from "./oracle.ts";

export function beliefHasRecord(context: OracleContext): Oracle {
  const name = "belief-has-record";
  const mismatch = (believer: Believer): string | null => {
    const record = context.recordOf(believer.key);
    // A damaged record cannot be compared; it cannot be granted to anybody either.
    if (record === null) return damagesRecords(context.config) ? null : "there is no record";
    if (recordFence(record) !== believer.fence) return `the record has fence ${recordFence(record)}`;
    if (record.state === "released") return "the record is released";
    const clocked = context.config.storeClock !== "none";
    if (clocked && context.storeNowMs() >= record.expiresAtMs)
      return `the record expired ${context.storeNowMs() - record.expiresAtMs} ms ago`;
    return null;
  };
  return {
    name,
    afterEvent: () => {
      if (!context.expectations.recordsLast) return;
      for (const believers of context.believers.values()) {
        for (const believer of believers) {
          if (believer.frozen() || believer.ended()) continue;
          // Asked only when something is wrong: asking may end a lease, and would hide a signal that is late.
          const problem = mismatch(believer);
          if (problem !== null && believer.believes())
            context.fail(name, `${believer.who} believes in fence ${believer.fence}, but ${problem}`);
        }
      }
    },
  };
}

/**
 * ExpiredLeaseClaimable: whatever happened to a key, once its time has passed somebody new may have it.
 * Asked of `decide` itself, on what stands in the store at the end.
 */
import { decide, endOfRecord, exactly, keyId, type LeaseKey, type LeasePolicy } from "solehold/internal";
import type { Oracle, OracleContext } from "./oracle.ts";

export function claimable(context: OracleContext, keys: readonly LeaseKey[], policy: LeasePolicy): Oracle {
  const name = "claimable";
  return {
    name,
    atEnd: () => {
      for (const key of keys) {
        const record = context.recordOf(key);
        if (record === null) continue;
        const overMs = Math.max(context.storeNowMs(), record.expiresAtMs, endOfRecord(record));
        const { decision } = decide(
          {
            op: "acquire",
            key,
            holder: "newcomer",
            purpose: "Operation",
            ttlMs: policy.defaultTtlMs,
            tokenHash: "n".repeat(43),
            nonce: "newcomer",
          },
          { record, floor: 0n },
          exactly(overMs),
          policy,
        );
        if (decision.kind !== "granted")
          context.fail(name, `${keyId(key)} cannot be claimed after its end: ${decision.reason}`);
      }
    },
  };
}

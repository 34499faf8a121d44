/**
 * ExpiredLeaseClaimable: whatever happened to a key, once its time has passed somebody new may have it.
 * Asked of `decide` itself, on what stands in the store at the end.
 */
import { decide, endOfRecord, exactly, keyId, type LeaseKey, type LeasePolicy } from "solehold/internal";
import type { Oracle, Scene } from "./oracle.ts";

export function claimable(scene: Scene, keys: readonly LeaseKey[], policy: LeasePolicy): Oracle {
  const name = "claimable";
  return {
    name,
    atEnd: () => {
      for (const key of keys) {
        const record = scene.recordOf(key);
        if (record === null) continue;
        const overMs = Math.max(scene.storeNowMs(), record.expiresAtMs, endOfRecord(record));
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
          scene.fail(name, `${keyId(key)} cannot be claimed after its end: ${decision.reason}`);
      }
    },
  };
}

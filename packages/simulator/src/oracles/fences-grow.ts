/** FencingTokenMonotonic: every grant of a key has a higher fence than all before, over release and collection. */
import { keyId, type LeaseRecord, recordFence } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

export function fencesGrow(context: OracleContext): Oracle {
  const name = "fences-grow";
  const highest = new Map<string, bigint>();
  return {
    name,
    onWrite: (write) => {
      const { after, before } = write;
      if (after === null || after.key.name.startsWith("$") || !context.expectations.fencesGrow) return;
      const id = keyId(after.key);
      const fence = recordFence(after);
      const top = highest.get(id) ?? 0n;
      if (isGrant(write) && fence <= top)
        context.fail(name, `${id} was granted with fence ${fence} after fence ${top}`);
      // What a store brings back that lost the writes since may be renewed: nobody is granted anything by that.
      else if (fence < top && !context.config.faults.has("lost-writes"))
        context.fail(name, `the fence of ${id} went back from ${top} to ${fence}`);
      // One write may replace a grant by another under the same number: a holder's name betrays it.
      else if (before !== null && fence === recordFence(before) && isAnotherGrant(before, after))
        context.fail(name, `fence ${fence} of ${id} was given to a second grant`);
      if (fence > top) highest.set(id, fence);
    },
  };
}

/** A release clears the token of its own grant. */
function isAnotherGrant(before: LeaseRecord, after: LeaseRecord): boolean {
  return before.tokenHash !== after.tokenHash && after.state !== "released";
}

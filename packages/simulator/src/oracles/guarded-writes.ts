/**
 * What stands behind a guard never accepts an older fence after a newer one, whatever clocks do: not after a newer write, and
 * not after a new holder raised its fence, before its first write.
 */
import { keyId } from "solehold/internal";
import type { Oracle, OracleContext } from "./oracle.ts";

export function guardedWrites(context: OracleContext): Oracle {
  const name = "guarded-writes";
  const newest = new Map<string, bigint>();
  return {
    name,
    onResourceStep: ({ kind, key, fence, accepted }) => {
      if (!accepted) {
        if (kind === "write") context.sometimes("a zombie's write was refused by the guard");
        return;
      }
      const id = keyId(key);
      const top = newest.get(id) ?? 0n;
      if (fence >= top) newest.set(id, fence);
      else if (kind === "write")
        context.fail(name, `the resource of ${id} took fence ${fence} after fence ${top}`);
    },
  };
}

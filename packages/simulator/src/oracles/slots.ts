/**
 * Never more believe that they hold a name than it has slots, and nobody is granted a slot beyond those that it asked for.
 * That no two have the same slot is the same promise as for any lease; see `mutual-belief`.
 */
import { askedKey, keyId, type LeaseKey, slotIn } from "solehold/internal";
import type { Oracle, OracleContext } from "./oracle.ts";

export function slots(context: OracleContext, pool: LeaseKey): Oracle {
  const name = "slots";
  const { config } = context;
  return {
    name,
    onCallEnd: ({ request, outcome }) => {
      if (request.op !== "acquire" || outcome?.kind !== "applied") return;
      const { lease } = outcome.decision;
      const { slot } = slotIn(lease.key.name);
      if (slot >= (request.slots ?? 1) && keyId(lease.key) !== keyId(request.key))
        context.fail(name, `${lease.holder} asked for ${request.slots} slots and was granted slot ${slot}`);
    },
    afterEvent: () => {
      if (config.slots === 0 || !context.expectations.exclusive) return;
      const believers = [...context.believers.values()]
        .flat()
        .filter(({ key }) => keyId(askedKey(key)) === keyId(pool));
      if (believers.length < config.slots) return;
      const sure = believers.filter((each) => !each.frozen() && !each.ended() && each.believes());
      if (sure.length === config.slots) context.sometimes("all slots of a name were held at once");
      if (sure.length <= config.slots) return;
      const who = sure
        .map(({ who: process, key }) => `${process} (slot ${slotIn(key.name).slot})`)
        .join(", ");
      context.fail(name, `${who} believe that they hold ${config.slots} slots of ${keyId(pool)}`);
    },
  };
}

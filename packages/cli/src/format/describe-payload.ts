/** What a signature would consent to, in words that a person can be held to. */
import type { ApprovalPayload } from "solehold/internal";
import { shortDuration } from "./duration.ts";
import { isoTime } from "./lease.ts";

export function describePayload(payload: ApprovalPayload, signerId: string): readonly string[] {
  const { tenant, key, tier, notBeforeMs, notAfterMs, nonce } = payload;
  return [
    `${signerId} is about to approve, once, and for nothing but this:`,
    "",
    `  ${describeAction(payload)}`,
    "",
    `  key      ${key}`,
    `  tenant   ${tenant}`,
    `  tier     ${tier}`,
    `  valid    from ${isoTime(notBeforeMs)} until ${isoTime(notAfterMs)} (${shortDuration(notAfterMs - notBeforeMs)})`,
    `  request  ${nonce}`,
  ];
}

function describeAction({ action, key, holder, purpose, ttlMs }: ApprovalPayload): string {
  const [verb = "", generation] = action.split("@");
  const only = generation === undefined ? "whoever holds it" : `only if grant ${generation} is still current`;
  const time = `${shortDuration(ttlMs)} (${ttlMs} ms)`;
  switch (verb) {
    case "acquire":
      return `${holder} may TAKE the lease ${key} for ${purpose}, for ${time} and as long as it renews it.`;
    case "revoke":
      return `An operator may END the lease ${key} at once, ${only}.`;
    case "break":
      return `An operator may ASK FOR the lease ${key} BACK within ${time}, ${only}.`;
    default:
      return `The action ${action} on the lease ${key}, by ${holder}, for ${ttlMs} ms.`;
  }
}

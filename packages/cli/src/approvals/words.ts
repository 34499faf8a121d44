/** What a signature would consent to, in words that a person can be held to. */
import type { ApprovalPayload } from "solehold/internal";
import { shortDuration } from "../text/duration.ts";
import { isoTime } from "../text/lease.ts";
import { printable } from "../text/style.ts";

export function payloadInWords(payload: ApprovalPayload, signerId: string): readonly string[] {
  const { tenant, key, tier, notBeforeMs, notAfterMs, nonce } = payload;
  return [
    `${printable(signerId)} is about to approve, once, and for nothing but this:`,
    "",
    `  ${actionInWords(payload)}`,
    "",
    `  key      ${printable(key)}`,
    `  tenant   ${printable(tenant)}`,
    `  tier     ${printable(tier)}`,
    `  valid    from ${isoTime(notBeforeMs)} until ${isoTime(notAfterMs)} (${shortDuration(notAfterMs - notBeforeMs)})`,
    `  request  ${nonce}`,
  ];
}

export function actionInWords({ action, key, holder, purpose, ttlMs }: ApprovalPayload): string {
  const [verb = "", generation] = action.split("@");
  const name = printable(key);
  const only = generation === undefined ? "whoever holds it" : `only if grant ${generation} is still current`;
  switch (verb) {
    case "acquire":
      return `${printable(holder)} may TAKE the lease ${name} for ${printable(purpose)}, for ${shortDuration(ttlMs)} (${ttlMs} ms) and as long as it renews it.`;
    case "revoke":
      return `An operator may END the lease ${name} at once, ${only}.`;
    case "break":
      return `An operator may ASK FOR the lease ${name} BACK within ${shortDuration(ttlMs)} (${ttlMs} ms), ${only}.`;
    default:
      return `The action ${printable(action)} on the lease ${name}, by ${printable(holder)}, for ${ttlMs} ms.`;
  }
}

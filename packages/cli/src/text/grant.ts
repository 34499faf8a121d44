/** The answer to `acquire`: the one place where a token is printed, because that is what was asked for. */
import { formatFence, type Lease } from "solehold";
import { readTransfer } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { shortDuration } from "./duration.ts";
import { isoTime } from "./lease.ts";
import { printAnswer } from "./print.ts";

export function printGrant(invocation: Invocation, lease: Lease): void {
  const { key, holder, purpose, ttlMs, fence, expiresAtMs, resumeFromLedgerRequired } = lease;
  const remainingMs = lease.remaining();
  // From here on the user holds it, not this process.
  const { token } = readTransfer(lease.transfer());
  printAnswer(invocation, {
    document: () => ({
      tenant: key.tenant,
      key: key.name,
      holder,
      purpose,
      fence: formatFence(fence),
      ttlMs,
      expiresAtMs,
      remainingMs: Math.floor(remainingMs),
      resumeRequired: resumeFromLedgerRequired,
      token,
    }),
    lines: () => [
      `${key.name} is yours for ${shortDuration(remainingMs)}, until ${isoTime(expiresAtMs)}`,
      `  holder   ${holder}`,
      `  fence    ${fence}`,
      `  purpose  ${purpose}`,
      `  token    ${token}`,
      ...(resumeFromLedgerRequired
        ? [
            "  resume   the last holder did not finish: rebuild from persisted state before you act, then",
            `           solehold resume ${shellWord(key.name)}`,
          ]
        : []),
      "The token is a secret. To go on:",
      `  export SOLEHOLD_TOKEN=${token}`,
      `  solehold renew ${shellWord(key.name)}; solehold release ${shellWord(key.name)}`,
    ],
  });
}

/** As it can be pasted into a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Takes a lease and prints its token: the one answer with a token in it, because that is what was asked for. */

import { formatFence, type Lease } from "solehold";
import { given } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { isoTime } from "../format/lease.ts";
import { interruptible } from "../interrupt.ts";
import {
  durationOption,
  purposeOption,
  sharing,
  unsignedOption,
  waitOption,
} from "../parse/option-values.ts";
import { acquireWithNotice } from "../run/acquire-with-notice.ts";
import { approvalForAcquire } from "./approvals/load-approvals.ts";

export async function acquire(invocation: Invocation): Promise<number> {
  const { io, values } = invocation;
  const key = keyOf(invocation);
  const wait = waitOption(invocation);
  const options = given({
    ttl: durationOption(invocation, "ttl", 1),
    purpose: purposeOption(invocation),
    term: unsignedOption(invocation, "term"),
    note: values.note,
    ...sharing(invocation),
    idempotencyKey: values["idempotency-key"],
  });
  return await withLeases(invocation, "user", async (connection) => {
    const approval = await approvalForAcquire(invocation, connection, key, options);
    const lease = await interruptible(io, (signal) =>
      acquireWithNotice(
        connection,
        key,
        { ...options, ...approval, autoRenew: false, wait, signal },
        invocation,
      ),
    );
    printGrant(invocation, lease);
    return EXIT.ok;
  });
}

function printGrant(invocation: Invocation, lease: Lease): void {
  const { key, holder, purpose, ttlMs, fence, expiresAtMs, resumeFromLedgerRequired, token } = lease;
  const remainingMs = lease.remaining();
  // From here on the user holds it, not this process.
  lease.abandon();
  printAnswer(invocation, {
    document: () => ({
      tenant: key.tenant,
      key: key.name,
      slot: lease.slot,
      holder,
      purpose,
      fence: formatFence(fence),
      ttlMs,
      expiresAtMs,
      remainingMs: Math.floor(remainingMs),
      resumeRequired: resumeFromLedgerRequired,
      token,
    }),
    lines: () => {
      const next = (command: string): string => commandFor(invocation, command, key.name);
      const rebuild = "the last holder did not finish: rebuild from persisted state before you act, then";
      return [
        `${key.name} is yours for ${shortDuration(remainingMs)}, until ${isoTime(expiresAtMs)}`,
        `  holder   ${holder}`,
        `  fence    ${fence}`,
        `  purpose  ${purpose}`,
        `  token    ${token}`,
        ...(resumeFromLedgerRequired ? [`  resume   ${rebuild}`, `           ${next("resume")}`] : []),
        "The token is a secret. To go on:",
        `  export SOLEHOLD_TOKEN=${token}`,
        `  ${next("renew")}`,
        `  ${next("release")}`,
      ];
    },
  });
}

/** What the next command needs to reach the same lease, unless the environment says it. */
const REPEATED = ["store", "server", "tenant", "holder"];

function commandFor({ values }: Invocation, command: string, key: string): string {
  const options = REPEATED.flatMap((name) => {
    const value = values[name];
    return value === undefined ? [] : [`--${name}`, shellWord(value)];
  });
  return ["solehold", command, shellWord(key), ...options].join(" ");
}

/** As it can be pasted into a shell. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

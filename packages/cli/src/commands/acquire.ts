/** `solehold acquire`: takes a lease for a script that renews and releases it itself. */
import type { Command, Invocation } from "../command.ts";
import {
  APPROVALS_OPTION,
  CONNECTION_OPTIONS,
  HOLDER_OPTION,
  NOTE_OPTION,
  PURPOSE_OPTION,
  TTL_OPTION,
  WAIT_OPTION,
} from "../options.ts";

export const command: Command = {
  name: "acquire",
  summary: "Take a lease and print its fence and its token",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: {
    ttl: TTL_OPTION,
    wait: WAIT_OPTION,
    purpose: PURPOSE_OPTION,
    holder: HOLDER_OPTION,
    note: NOTE_OPTION,
    approvals: APPROVALS_OPTION,
    term: { type: "value", placeholder: "NUMBER", help: "the replication term, for systems that have one" },
    "idempotency-key": {
      type: "value",
      placeholder: "TEXT",
      help: "the same key again gets the same grant, even after a crash",
    },
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `The token is the secret that proves the grant to renew, use, release and handoff. Nothing renews the
lease by itself: 'solehold run' does that.`,
  ],
  examples: [
    { line: "solehold acquire db/main --ttl 5m", what: "take it by hand" },
    {
      line: "export SOLEHOLD_TOKEN=$(solehold acquire job --json | jq -r .token)",
      what: "in a script: renew and release then need no more than the key",
    },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { io } = invocation;
  const { keyOf, withLeases } = await import("../connection.ts");
  const { durationOption, purposeOption, termOption, waitOption } = await import("../values.ts");
  const { acquireAndSay } = await import("../waiting.ts");
  const { interruptible } = await import("../interrupt.ts");
  const { approvalForAcquire } = await import("../approvals/present.ts");
  const { printGrant } = await import("../text/grant.ts");
  const key = keyOf(invocation);
  const ttl = durationOption(invocation, "ttl", 1);
  const purpose = purposeOption(invocation);
  const wait = waitOption(invocation);
  const term = termOption(invocation);
  const { note, "idempotency-key": idempotencyKey } = invocation.values;
  const options = {
    autoRenew: false as const,
    ...(ttl === null ? {} : { ttl }),
    ...(purpose === null ? {} : { purpose }),
    ...(wait === null ? {} : { wait }),
    ...(term === null ? {} : { term }),
    ...(note === undefined ? {} : { note }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  return await withLeases(invocation, "user", async (leases) => {
    const approval = await approvalForAcquire(invocation, leases, key, options);
    const lease = await interruptible(io, (signal) =>
      acquireAndSay(leases, key, { ...options, ...approval, signal }, io),
    );
    printGrant(invocation, lease);
    return 0;
  });
}

/** `solehold acquire`: takes a lease for a script that renews and releases it itself. */
import { type Command, value } from "../command.ts";
import { ACQUIRE_OPTIONS, CONNECTION_OPTIONS, KEY } from "../options.ts";

export const command: Command = {
  name: "acquire",
  summary: "Take a lease and print its fence and its token",
  usage: "KEY [options]",
  positionals: KEY,
  options: {
    ...ACQUIRE_OPTIONS,
    term: value("NUMBER", "the replication term, for systems that have one"),
    "idempotency-key": value("TEXT", "the same key again gets the same grant, even after a crash"),
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `The token is the secret that proves the grant to renew, use, release and handoff. Nothing renews the
lease by itself: 'solehold run' does that.`,
  ],
  examples: {
    "solehold acquire db/main --ttl 5m": "take it by hand",
    "export SOLEHOLD_TOKEN=$(solehold acquire job --json | jq -r .token)":
      "in a script: renew and release then need no more than the key",
  },
  action: async () => (await import("../actions/acquire.ts")).acquire,
};

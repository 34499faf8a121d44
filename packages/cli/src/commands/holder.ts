/** Commands of a script that holds a lease itself: it takes one, and proves each further step with the token. */
import { type Command, value } from "../command.ts";
import {
  ACQUIRE_OPTIONS,
  CONNECTION_OPTIONS,
  KEY,
  OWNER_OPTIONS,
  PURPOSE_OPTION,
  TTL_OPTION,
} from "../options.ts";

/** `solehold acquire`: takes a lease for a script that renews and releases it itself. */
export const acquire: Command = {
  name: "acquire",
  summary: "Take a lease and print its fence and its token",
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

/** `solehold renew`: sets the lease's end to now + ttl. It never adds, and never brings an ended lease back. */
export const renew: Command = {
  name: "renew",
  summary: "Prolong a lease that you hold",
  positionals: KEY,
  options: { ttl: TTL_OPTION, ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 4 when the lease is over: expired, revoked or taken by another."],
  examples: { "SOLEHOLD_TOKEN=... solehold renew db/main --ttl 5m": "five more minutes from now" },
  action: async () => (await import("../actions/lease-commands.ts")).renew,
};

/** `solehold release`: ends a lease before its time. A second release of the same grant is fine. */
export const release: Command = {
  name: "release",
  summary: "Release a lease that you hold",
  positionals: KEY,
  options: { ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 4 when it was no longer yours. A lease that another has by now is never touched."],
  examples: { "SOLEHOLD_TOKEN=... solehold release db/main": "let the next one have it at once" },
  action: async () => (await import("../actions/lease-commands.ts")).release,
};

/** `solehold use`: asks whether the lease may be used now, for this purpose. It never prolongs it. */
export const use: Command = {
  name: "use",
  summary: "Ask whether a lease may be used now, for a purpose",
  positionals: KEY,
  options: { purpose: PURPOSE_OPTION, ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 0: yes. 4: the lease is over. 1: it is yours, but not for this purpose."],
  examples: { "solehold use db/main --purpose StateWrite && ./write-state.sh": "check before a step" },
  action: async () => (await import("../actions/lease-commands.ts")).use,
};

/** `solehold resume`: after a takeover, says that the work was rebuilt, so that the lease may be used. */
export const resume: Command = {
  name: "resume",
  summary: "Say that work was rebuilt after a takeover: 'use' is denied before",
  positionals: KEY,
  options: { ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: [
    "Whoever takes a lease from a holder that did not finish must rebuild from persisted state first; acquire and get say so.",
  ],
  examples: { "./rebuild.sh && solehold resume db/main": "then steps may run again" },
  action: async () => (await import("../actions/lease-commands.ts")).resume,
};

/** `solehold handoff`: stops holding, and lets only a named successor take over until a deadline. */
export const handoff: Command = {
  name: "handoff",
  summary: "Give a lease to a named successor",
  usage: "KEY --to NAME --within DURATION [options]",
  positionals: KEY,
  options: {
    to: value("NAME", "the holder that may take it"),
    within: value("DURATION", "how long only that holder may; after that any may"),
    ...OWNER_OPTIONS,
    ...CONNECTION_OPTIONS,
  },
  examples: { "solehold handoff db/main --to replica-2 --within 30s": "a planned switch of the writer" },
  action: async () => (await import("../actions/lease-commands.ts")).handoff,
};

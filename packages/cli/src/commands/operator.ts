/** Commands of operators: on leases that others hold, on records, and on stores. */
import { type Command, flag, value } from "../command.ts";
import { APPROVALS_OPTION, COMMON_OPTIONS, CONNECTION_OPTIONS, FENCE_OPTION, KEY } from "../options.ts";

/** `solehold revoke`: an operator ends the lease of a holder. */
export const revoke: Command = {
  name: "revoke",
  summary: "End a holder's lease now (for operators)",
  positionals: KEY,
  options: { fence: FENCE_OPTION, approvals: APPROVALS_OPTION, ...CONNECTION_OPTIONS },
  notes: [
    `Its holder can neither use nor renew it from now on. Another gets it once the old holder can no longer
believe that it holds it: at the end of what it was last promised.`,
  ],
  examples: {
    "solehold revoke job/7": "whoever holds it",
    "solehold revoke job/7 --fence 42": "only if it is still that grant",
  },
  action: async () => (await import("../actions/lease-commands.ts")).revoke,
};

/** `solehold break`: an operator bounds the renewals of a lease, so that its holder has time to finish. */
export const breakLease: Command = {
  name: "break",
  summary: "Make a holder give up its lease after a period (for operators)",
  usage: "KEY --period DURATION [options]",
  positionals: KEY,
  options: {
    period: value("DURATION", "no renewal reaches past this from now; 0 stops renewals at once"),
    fence: FENCE_OPTION,
    approvals: APPROVALS_OPTION,
    ...CONNECTION_OPTIONS,
  },
  notes: [
    "What the holder was already promised is never taken away: the lease ends at the later of the two.",
  ],
  examples: { "solehold break db/main --period 30s": "half a minute to wind down" },
  action: async () => (await import("../actions/lease-commands.ts")).breakLease,
};

/** `solehold collect`: deletes the records of leases that ended long ago. */
export const collect: Command = {
  name: "collect",
  summary: "Delete the records of leases that ended more than a day ago",
  options: CONNECTION_OPTIONS,
  notes: [
    "A server does this by itself every hour (serve --collect-every). Without a server, run it now and then: a record stays in the store after its lease has ended.",
    "Nothing that is held or ended less than a day ago is touched, fences keep growing, and it may run while leases are used. One tenant at a time.",
  ],
  examples: {
    "solehold collect --store redis://localhost:6379": "the default tenant",
    "solehold collect --tenant ci --json": "another one, for a script",
  },
  action: async () => (await import("../actions/maintenance.ts")).collect,
};

/** `solehold repair`: replaces a record that cannot be read, so that its lease can be acquired again. */
export const repair: Command = {
  name: "repair",
  summary: "Replace a damaged record, so that its lease can be acquired again",
  usage: "KEY [--generation N] [--yes] [options]",
  positionals: KEY,
  options: {
    generation: value(
      "N",
      "the next grant is above this; no lower than any granted before (default: by the store's time)",
    ),
    yes: flag("do not ask"),
    ...CONNECTION_OPTIONS,
  },
  notes: [
    "A damaged record bars its key: nothing is granted, because it does not say who holds it. Make sure that the last holder has stopped, then repair it. Who held it and until when is lost; fences keep growing.",
    "Exit code 1 when the record is not damaged: nothing was changed.",
  ],
  examples: {
    "solehold repair db/main": "says what will happen, and asks",
    "solehold repair db/main --yes --json": "for a script",
  },
  action: async () => (await import("../actions/maintenance.ts")).repair,
};

/** `solehold doctor`: can the store be reached, and may it be trusted with leases? */
export const doctor: Command = {
  name: "doctor",
  summary: "Check a store: reachable, compare-and-swap, clock, durability, permissions",
  options: CONNECTION_OPTIONS,
  notes: [
    `It takes real leases on keys of its own (solehold-doctor/...) and cleans up after itself. Exit code 1 when
a check failed; warnings do not count.`,
  ],
  examples: {
    "solehold doctor": "the default store",
    "solehold doctor --store redis://localhost:6379 --json": "another one, for a script",
  },
  action: async () => (await import("../actions/doctor.ts")).doctor,
};

/** `solehold schema`: what a store needs to be created before it can be used, for those who create it by hand. */
export const schema: Command = {
  name: "schema",
  summary: "Print a store's schema, to create it by hand",
  positionals: [{ name: "STORE", presence: "optional", choices: ["postgres"] }],
  options: {
    schema: value("NAME", "the schema in the database (default solehold)"),
    table: value("NAME", "the table (default work_order_leases)"),
    ...COMMON_OPTIONS,
  },
  notes: ["STORE is postgres, which is the default. Other stores create what they need by themselves."],
  examples: { "solehold schema postgres | psql app": "with the rights of an administrator" },
  action: async () => (await import("../actions/schema.ts")).schema,
};

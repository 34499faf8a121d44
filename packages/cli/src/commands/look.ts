/** Commands that show leases, and change nothing. */
import { type Command, choice, flag, value } from "../command.ts";
import { CONNECTION_OPTIONS, KEY, PREFIX } from "../options.ts";

/** `solehold get`: all that anybody may know about one lease. */
export const get: Command = {
  name: "get",
  summary: "Show one lease",
  positionals: KEY,
  options: CONNECTION_OPTIONS,
  notes: ["Exit code 1, and null with --json, when nothing was ever granted under the key."],
  examples: {
    "solehold get db/main": "who has it, since when, until when",
    "solehold get db/main --json | jq -r .fence": "its newest fence",
  },
  action: async () => (await import("../actions/ls.ts")).get,
};

/** `solehold ls`: the leases under a prefix, as a table or one JSON document. */
export const ls: Command = {
  name: "ls",
  summary: "List leases",
  positionals: PREFIX,
  options: {
    all: flag("also those that have ended: expired, released, revoked"),
    count: flag("only how many there are"),
    holder: value("NAME", "only those of this holder"),
    limit: value("NUMBER", "at most so many"),
    ...CONNECTION_OPTIONS,
  },
  examples: {
    "solehold ls job/": "everything that is held and begins with job/",
    "solehold ls --count": "how many leases are alive",
    "solehold ls --all --json | jq '.leases[].key'": "all keys that ever had a lease",
  },
  action: async () => (await import("../actions/ls.ts")).ls,
};

/** `solehold watch`: one line per change. */
export const watch: Command = {
  name: "watch",
  summary: "Print a line for every change of a lease",
  positionals: PREFIX,
  options: {
    renewals: flag("also renewals, which are many"),
    every: value("DURATION", "how often to look where the store cannot announce changes (default 1s)"),
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `What is held at the start comes first. Changes that follow each other faster than the store tells, or
than --every, may show as one.`,
  ],
  examples: {
    "solehold watch job/": "until Ctrl-C",
    "solehold watch --json | jq -c '[.event, .key, .holder]'": "for a script",
  },
  action: async () => (await import("../actions/watch.ts")).watch,
};

export const TOP_ORDERS = ["key", "holder", "left", "waiting"] as const;

/** `solehold top`: the leases that are held, live, on the whole terminal. */
export const top: Command = {
  name: "top",
  summary: "Show what is held and who waits, live, until Ctrl-C",
  positionals: PREFIX,
  options: {
    sort: choice(
      TOP_ORDERS,
      "by key (default), by holder, what ends next first, or what most wait for first",
    ),
    every: value("DURATION", "how often to look where the store cannot announce changes (default 1s)"),
    ...CONNECTION_OPTIONS,
  },
  notes: [
    "A name with slots is one line. '2 of 3': two are held, of three that were ever seen in use. WAITING counts requests on this server; without a server it counts the processes that show in the store that they wait.",
    "Without a terminal, as in a pipe, or with --json, it shows the leases once and ends, as `solehold ls` does.",
  ],
  examples: {
    "solehold top": "everything that is held",
    "solehold top job/ --sort left": "what begins with job/, what ends next first",
  },
  action: async () => (await import("../actions/top.ts")).top,
};

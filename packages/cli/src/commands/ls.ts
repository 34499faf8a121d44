/** `solehold ls`: the leases under a prefix, as a table or one JSON document. */
import { type Command, flag, value } from "../command.ts";
import { CONNECTION_OPTIONS, PREFIX } from "../options.ts";

export const command: Command = {
  name: "ls",
  summary: "List leases",
  usage: "[PREFIX] [options]",
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

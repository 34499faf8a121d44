/** `solehold top`: the leases that are held, live, on the whole terminal. */
import { type Command, choice, value } from "../command.ts";
import { CONNECTION_OPTIONS, PREFIX } from "../options.ts";

export const TOP_ORDERS = ["key", "holder", "left", "waiting"] as const;

export const command: Command = {
  name: "top",
  summary: "Show what is held and who waits, live, until Ctrl-C",
  usage: "[PREFIX] [options]",
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

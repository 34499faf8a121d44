/** `solehold coordinator select`: which node is a key's home. The same answer on every machine. */
import { type Command, choice, flag, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "coordinator",
  summary: "Say which node is a key's home, by weighted rendezvous",
  usage: "select KEY --nodes NAME=WEIGHT,... [options]",
  positionals: [
    { name: "ACTION", presence: "required", choices: ["select"] },
    { name: "KEY", presence: "required" },
  ],
  options: {
    nodes: value("NAME=WEIGHT,...", "the nodes; a weight of 0 leaves one out"),
    algorithm: choice(["rendezvous-v1", "product-v1"], "how to choose (default rendezvous-v1)"),
    all: flag("the whole order: where to go when the first does not answer"),
    "trace-id": value("TEXT", "repeated in the answer"),
    ...COMMON_OPTIONS,
  },
  examples: {
    "solehold coordinator select lease-1 --nodes a=10,b=5,c=8": "its home",
    "solehold coordinator select lease-1 --nodes a=10,b=5,c=8 --all --json": "and who is next",
  },
  action: async () => (await import("../actions/coordinator.ts")).coordinator,
};

/** `solehold coordinator select`: which node is a key's home. The same answer on every machine. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "coordinator",
  summary: "Say which node is a key's home, by weighted rendezvous",
  usage: "select KEY --nodes NAME=WEIGHT,... [options]",
  positionals: [
    { name: "ACTION", presence: "required", choices: ["select"] },
    { name: "KEY", presence: "required" },
  ],
  trailing: "none",
  options: {
    nodes: { type: "value", placeholder: "NAME=WEIGHT,...", help: "the nodes; a weight of 0 leaves one out" },
    algorithm: {
      type: "value",
      choices: ["rendezvous-v1", "product-v1"],
      help: "how to choose (default rendezvous-v1)",
    },
    all: { type: "flag", help: "the whole order: where to go when the first does not answer" },
    "trace-id": { type: "value", placeholder: "TEXT", help: "repeated in the answer" },
    ...COMMON_OPTIONS,
  },
  examples: [
    { line: "solehold coordinator select lease-1 --nodes a=10,b=5,c=8", what: "its home" },
    {
      line: "solehold coordinator select lease-1 --nodes a=10,b=5,c=8 --all --json",
      what: "and who is next",
    },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { select } = await import("../coordinator.ts");
  return await select(invocation);
}

/** `solehold repair`: replaces a record that cannot be read, so that its lease can be acquired again. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "repair",
  summary: "Replace a damaged record, so that its lease can be acquired again",
  usage: "KEY [--generation N] [--yes] [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: {
    generation: {
      type: "value",
      placeholder: "N",
      help: "the next grant is above this; no lower than any granted before (default: by the store's time)",
    },
    yes: { type: "flag", help: "do not ask" },
    ...CONNECTION_OPTIONS,
  },
  notes: [
    "A damaged record bars its key: nothing is granted, because nobody can say who holds it. Make sure that the last holder has stopped, then repair it. Who held it and until when is lost; fences keep growing.",
    "Exit code 1 when the record is not damaged: nothing was changed.",
  ],
  examples: [
    { line: "solehold repair db/main", what: "says what will happen, and asks" },
    { line: "solehold repair db/main --yes --json", what: "for a script" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { repair } = await import("../repairing.ts");
  return await repair(invocation);
}

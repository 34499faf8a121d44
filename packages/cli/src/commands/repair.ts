/** `solehold repair`: replaces a record that cannot be read, so that its lease can be acquired again. */
import { type Command, flag, value } from "../command.ts";
import { CONNECTION_OPTIONS, KEY } from "../options.ts";

export const command: Command = {
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

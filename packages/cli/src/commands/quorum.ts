/** `solehold quorum verify`: would these approvals do? Nothing is used up by asking. */
import { type Command, value } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "quorum",
  summary: "Check whether approvals are enough",
  usage: "verify --file FILE --policy FILE [options]",
  positionals: [{ name: "ACTION", presence: "required", choices: ["verify"] }],
  options: {
    file: value("FILE", "the request and its approvals, from approve"),
    policy: value("FILE", "the approval policy, or only signers and thresholds, as JSON"),
    at: value("TIME", "as of this instant, ISO 8601 (default now)"),
    "trace-id": value("TEXT", "repeated in the answer"),
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 0 when they are enough, 1 when not, with every reason."],
  examples: { "solehold quorum verify --file drop.json --policy approvals.json": "before it is presented" },
  action: async () => (await import("../actions/quorum.ts")).quorum,
};

/** `solehold quorum verify`: would these approvals do? Nothing is used up by asking. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "quorum",
  summary: "Check whether approvals are enough",
  usage: "verify --file FILE --policy FILE [options]",
  positionals: [{ name: "ACTION", presence: "required", choices: ["verify"] }],
  trailing: "none",
  options: {
    file: { type: "value", placeholder: "FILE", help: "the request and its approvals, from approve" },
    policy: {
      type: "value",
      placeholder: "FILE",
      help: "the approval policy, or only signers and thresholds, as JSON",
    },
    at: { type: "value", placeholder: "TIME", help: "as of this instant, ISO 8601 (default now)" },
    "trace-id": { type: "value", placeholder: "TEXT", help: "repeated in the answer" },
    ...COMMON_OPTIONS,
  },
  notes: ["Exit code 0 when they are enough, 1 when not, with every reason."],
  examples: [
    {
      line: "solehold quorum verify --file drop.json --policy approvals.json",
      what: "before it is presented",
    },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { verify } = await import("../approvals/verify.ts");
  return await verify(invocation);
}

/** `solehold get`: all that anybody may know about one lease. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "get",
  summary: "Show one lease",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: CONNECTION_OPTIONS,
  notes: ["Exit code 1, and null with --json, when nothing was ever granted under the key."],
  examples: [
    { line: "solehold get db/main", what: "who has it, since when, until when" },
    { line: "solehold get db/main --json | jq -r .fence", what: "its newest fence" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { keyOf, withLeases } = await import("../connection.ts");
  const { leaseDocument } = await import("../text/lease.ts");
  const { detailLines } = await import("../text/details.ts");
  const { printAnswer } = await import("../text/print.ts");
  const { EXIT } = await import("../exit-codes.ts");
  const key = keyOf(invocation);
  return await withLeases(invocation, "user", async (leases) => {
    const view = await leases.inspect(key);
    printAnswer(invocation, {
      document: () => (view === null ? null : leaseDocument(view)),
      lines: () => (view === null ? [`${key}: nothing was ever granted`] : detailLines(view)),
    });
    return view === null ? EXIT.error : EXIT.ok;
  });
}

/** `solehold ls`: the leases under a prefix, as a table or one JSON document. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "ls",
  summary: "List leases",
  usage: "[PREFIX] [options]",
  positionals: [{ name: "PREFIX", presence: "optional" }],
  trailing: "none",
  options: {
    all: { type: "flag", help: "also those that have ended: expired, released, revoked" },
    holder: { type: "value", placeholder: "NAME", help: "only those of this holder" },
    limit: { type: "value", placeholder: "NUMBER", help: "at most so many" },
    ...CONNECTION_OPTIONS,
  },
  examples: [
    { line: "solehold ls job/", what: "everything that is held and begins with job/" },
    { line: "solehold ls --all --json | jq '.leases[].key'", what: "all keys that ever had a lease" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { withLeases } = await import("../connection.ts");
  const { listLeases, printListing } = await import("../listing.ts");
  const { limitOption } = await import("../values.ts");
  const { flags, values, positionals } = invocation;
  const [prefix = ""] = positionals;
  const { holder } = values;
  const query = {
    prefix,
    which: flags.has("all") ? ("all" as const) : ("live" as const),
    limit: limitOption(invocation) ?? Number.POSITIVE_INFINITY,
    ...(holder === undefined ? {} : { holder }),
  };
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    printListing(invocation, await listLeases(executor, tenant, query));
    return 0;
  });
}

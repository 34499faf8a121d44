/** `solehold collect`: deletes the records of leases that ended long ago. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "collect",
  summary: "Delete the records of leases that ended more than a day ago",
  usage: "[options]",
  positionals: [],
  trailing: "none",
  options: CONNECTION_OPTIONS,
  notes: [
    "A server does this by itself every hour (serve --collect-every). Without a server, run it now and then: a record stays in the store after its lease has ended.",
    "Nothing that is held or ended less than a day ago is touched, fences keep growing, and it may run while leases are used. One tenant at a time.",
  ],
  examples: [
    { line: "solehold collect --store redis://localhost:6379", what: "the default tenant" },
    { line: "solehold collect --tenant ci --json", what: "another one, for a script" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { withLeases } = await import("../connection.ts");
  const { assertCollectable, maintenanceOf } = await import("../maintenance.ts");
  const { printAnswer } = await import("../text/print.ts");
  const { EXIT } = await import("../exit-codes.ts");
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    assertCollectable(executor);
    const { scanned, deleted } = await maintenanceOf(executor).collect(tenant);
    printAnswer(invocation, {
      document: () => ({ tenant, scanned, deleted }),
      lines: () => [`tenant ${tenant}: ${deleted} of ${scanned} records deleted`],
    });
    return EXIT.ok;
  });
}

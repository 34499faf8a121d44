/** `solehold doctor`: can the store be reached, and may it be trusted with leases? */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";
import type { Colour } from "../text/style.ts";

export const command: Command = {
  name: "doctor",
  summary: "Check a store: reachable, compare-and-swap, clock, durability, permissions",
  usage: "[options]",
  positionals: [],
  trailing: "none",
  options: CONNECTION_OPTIONS,
  notes: [
    `It takes real leases on keys of its own (solehold-doctor/...) and cleans up after itself. Exit code 1 when
a check failed; warnings do not count.`,
  ],
  examples: [
    { line: "solehold doctor", what: "the default store" },
    { line: "solehold doctor --store redis://localhost:6379 --json", what: "another one, for a script" },
  ],
  run,
};

const COLOURS: Readonly<Record<string, Colour>> = { ok: "green", warn: "yellow", fail: "red", skip: "dim" };

async function run(invocation: Invocation): Promise<number> {
  const { io, values } = invocation;
  const { urlOf } = await import("../connection.ts");
  const { examine } = await import("../doctor/examine.ts");
  const { DEFAULT_TENANT, openExecutor, realEnv } = await import("solehold");
  const { printAnswer } = await import("../text/print.ts");
  const { painter } = await import("../text/style.ts");
  const { EXIT } = await import("../exit-codes.ts");
  const url = urlOf(invocation);
  const tenant = values.tenant ?? io.env.SOLEHOLD_TENANT ?? DEFAULT_TENANT;
  const report = await examine({ url, tenant, env: realEnv, open: () => openExecutor(url, { tenant }) });
  const paint = painter(io, io.stdout);
  printAnswer(invocation, {
    document: () => ({ ok: report.ok, checks: report.checks.map((check) => ({ ...check })) }),
    lines: () =>
      report.checks.map(
        ({ id, status, detail }) =>
          `${paint(COLOURS[status] ?? "dim", status.padEnd(4))}  ${id.padEnd(17)} ${detail}`,
      ),
  });
  return report.ok ? EXIT.ok : EXIT.error;
}

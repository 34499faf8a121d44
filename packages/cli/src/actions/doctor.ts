/** Can the store be reached, and may it be trusted with leases? */
import { type CheckStatus, openExecutor, realEnv } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { tenantOf, urlOf } from "../connection.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { type Colour, escapeControls, painter } from "../format/terminal.ts";
import { examine } from "./doctor/examine.ts";

const COLOURS: { readonly [status in CheckStatus]: Colour } = {
  ok: "green",
  warn: "yellow",
  fail: "red",
  skip: "dim",
};

export async function doctor(invocation: Invocation): Promise<number> {
  const { io } = invocation;
  const url = urlOf(invocation);
  const tenant = tenantOf(invocation);
  const report = await examine({ url, tenant, env: realEnv, open: () => openExecutor(url, { tenant }) });
  const paint = painter(io, io.stdout);
  printAnswer(invocation, {
    document: () => ({ ok: report.ok, checks: report.checks.map((check) => ({ ...check })) }),
    painted: () =>
      report.checks.map(({ id, status, detail }) => {
        const rest = escapeControls(`${id.padEnd(17)} ${detail}`);
        return `${paint(COLOURS[status], status.padEnd(4))}  ${rest}`;
      }),
  });
  return report.ok ? EXIT.ok : EXIT.error;
}

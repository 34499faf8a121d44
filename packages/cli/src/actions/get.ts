/** All that anybody may know about one lease. */
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { detailLines, leaseDocument } from "../format/lease.ts";

export async function get(invocation: Invocation): Promise<number> {
  const name = keyOf(invocation);
  return await withLeases(invocation, "user", async ({ executor, tenant }) => {
    const view = await executor.read({ tenant, name });
    printAnswer(invocation, {
      document: () => (view === null ? null : leaseDocument(view)),
      lines: () => (view === null ? [`${name}: nothing was ever granted`] : detailLines(view)),
    });
    return view === null ? EXIT.error : EXIT.ok;
  });
}

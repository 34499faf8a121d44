/** What to try where nothing is held yet. */
import { Command } from "../../ui/components.tsx";
import type { Who } from "../data/api.ts";

export function FirstSteps({ who }: { who: Who }) {
  const url = location.origin;
  const key = who.keysRequired ? ' -H "authorization: Bearer $SOLEHOLD_API_KEY"' : "";
  const body = '{"name":"reports/nightly","holder":"me","token":"my-secret","ttlMs":120000}';
  return (
    <section class="empty" aria-label="First steps">
      <h2>Nothing is held yet</h2>
      <p class="muted">Take a lease, and it appears here at once.</p>
      <Command text={`npx solehold run reports/nightly --server ${url} -- sleep 60`} />
      <p class="muted">Or without the command line:</p>
      <Command
        text={`curl -s${key} -H 'content-type: application/json' ${url}/v1/leases/acquire -d '${body}'`}
      />
      <p class="muted">Run one of them again meanwhile: a second holder learns who has it, and until when.</p>
    </section>
  );
}

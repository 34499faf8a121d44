/** What the marks of the picture mean; only those that occur. */
import type { Trace } from "@solehold/simulator";

export function Legend({ trace }: { readonly trace: Trace }) {
  const isAudit = trace.expectations === null;
  return (
    <ul class="legend" aria-label="Legend">
      <li>
        <i class="key-belief n0" /> {isAudit ? "holds the lease" : "believes that it holds the lease"}
      </li>
      <li>
        <i class="key-record n0" /> record in the store
      </li>
      <li>
        <i class="key-over n0" /> ended, not yet taken
      </li>
      {trace.writes.length > 0 && (
        <li>
          <i class="key-write n0" /> write accepted
        </li>
      )}
      {trace.writes.some(({ accepted }) => !accepted) && (
        <li>
          <i class="key-refused" /> write refused by its fence
        </li>
      )}
      {trace.faults.length > 0 && (
        <li>
          <i class="key-frozen" /> does not run
        </li>
      )}
    </ul>
  );
}

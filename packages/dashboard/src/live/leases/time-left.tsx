/** What is left of a lease: a bar that shrinks with each drawing, and the time in figures. */
import type { Lease } from "../data/api.ts";
import { countdown, isLive } from "../format.ts";

const LOW = 0.15;

export function TimeLeft({ lease, nowMs }: { lease: Lease; nowMs: number }) {
  if (!isLive(lease, nowMs)) return <span class="muted">–</span>;
  const leftMs = lease.expiresAtMs - nowMs;
  const share = Math.min(1, leftMs / lease.ttlMs);
  return (
    <>
      <span
        class="time-bar"
        aria-hidden="true"
        data-low={share < LOW}
        ref={(element) => {
          // The policy of this page forbids style attributes; setting a property is allowed.
          if (element !== null) element.style.backgroundSize = `${(share * 100).toFixed(1)}% 100%`;
        }}
      />
      {countdown(leftMs)}
    </>
  );
}

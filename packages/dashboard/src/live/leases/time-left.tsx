/** What is left of a lease: a bar that shrinks by itself (one CSS animation, no timer), and the time in figures. */
import type { Lease } from "../data/api.ts";
import { countdown, isLive } from "../format.ts";

export function TimeLeft({ lease, nowMs }: { lease: Lease; nowMs: number }) {
  if (!isLive(lease, nowMs)) return <span class="time-left muted">–</span>;
  const leftMs = lease.expiresAtMs - nowMs;
  return (
    <span class="time-left">
      <Bar key={`${lease.fence}:${lease.expiresAtMs}`} leftMs={leftMs} ttlMs={lease.ttlMs} />
      <span class="numeric">{countdown(leftMs)}</span>
    </span>
  );
}

/** Its key changes with the lease's end, so that a renewal starts it again. */
function Bar({ leftMs, ttlMs }: { leftMs: number; ttlMs: number }) {
  const spentMs = Math.max(0, ttlMs - leftMs);
  const start = (element: HTMLElement | null): void => {
    if (element === null || element.style.animationDuration !== "") return;
    element.style.animationDuration = `${ttlMs}ms`;
    element.style.animationDelay = `${-spentMs}ms`;
  };
  return (
    <span class="time-bar" aria-hidden="true">
      <span ref={start} />
    </span>
  );
}

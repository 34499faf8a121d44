/** Who waits for a lease on this server, in which order. */
import { durationInWords } from "solehold/browser";
import { Panel } from "../../ui/components.tsx";
import type { LeaseDetail } from "../data/lease-detail.ts";

export function QueuePanel({ detail: { queue, queueAtMs, home } }: { detail: LeaseDetail }) {
  const sinceMs = queueAtMs === 0 ? 0 : Date.now() - queueAtMs;
  return (
    <Panel
      id="queue"
      title="Queue"
      aside={<span class="muted">{queue.waiting === 0 ? "" : `${queue.waiting} waiting`}</span>}
    >
      {queue.waiters.length === 0 ? (
        <p class="muted pad">Nobody waits for it on this server.</p>
      ) : (
        <ol class="waiters">
          {queue.waiters.map(({ position, holder, waitedMs, expectedWaitMs }) => (
            <li key={`${position} ${holder}`}>
              <span class="position numeric">{position + 1}</span>
              <b>{holder}</b>
              <span class="muted numeric">
                waits {durationInWords(waitedMs + sinceMs)}, at most{" "}
                {durationInWords(Math.max(0, expectedWaitMs - sinceMs))} more if nobody renews
              </span>
            </li>
          ))}
        </ol>
      )}
      {home !== null && <Home {...home} />}
    </Panel>
  );
}

/** Clients send a key's requests to its home, so that is where its waiters are. */
function Home({ home, self, url }: { home: string; self: string | null; url: string }) {
  return (
    <p class="home muted">
      Home of this key: <b>{home}</b>
      {home === self ? ", this server" : ""}
      {home !== self && /^https?:/.test(url) && (
        <>
          . Its waiters are there: <a href={`${url}/${location.hash}`}>look</a>
        </>
      )}
    </p>
  );
}

/** Every decision about a lease, the newest first, in words. */

import { useState } from "preact/hooks";
import { type AuditEvent, decisionInWords } from "solehold/browser";
import { Segmented } from "../../ui/components.tsx";
import { isoOf, timeOf } from "../format.ts";

const SHOWN = 60;

export function Decisions({ events, isLoading }: { events: readonly AuditEvent[]; isLoading: boolean }) {
  const [which, setWhich] = useState<"some" | "all">("some");
  const [limit, setLimit] = useState(SHOWN);
  const wanted =
    which === "all" ? events : events.filter(({ action, allowed }) => !allowed || !isQuiet(action));
  return (
    <section class="panel decisions" aria-labelledby="decisions">
      <div class="section-head">
        <h2 id="decisions">Decisions</h2>
        <Segmented
          label="Which"
          choices={[
            { value: "some", label: "without renewals" },
            { value: "all", label: "all" },
          ]}
          value={which}
          onChange={setWhich}
        />
      </div>
      {wanted.length === 0 && (
        <p class="muted pad">{isLoading ? "Loading…" : "The audit has nothing about it."}</p>
      )}
      <ol class="events">
        {wanted.slice(0, limit).map((event) => (
          <EventLine key={`${event.at} ${event.traceId} ${event.action} ${event.reason}`} event={event} />
        ))}
      </ol>
      {wanted.length > limit && (
        <button type="button" class="button quiet" onClick={() => setLimit(limit + SHOWN * 4)}>
          Show more of {wanted.length}
        </button>
      )}
    </section>
  );
}

export function EventLine({ event, withKey = false }: { event: AuditEvent; withKey?: boolean }) {
  return (
    <li data-tone={toneOfEvent(event)}>
      <time class="numeric muted" dateTime={isoOf(event.at)} title={isoOf(event.at)}>
        {timeOf(event.at)}
      </time>
      <span class="event-what">
        {withKey && (
          <>
            <span class="mono event-key">{event.key}</span>{" "}
          </>
        )}
        {event.holder !== undefined && event.holder !== "" && <b>{event.holder}</b>} {attemptOf(event)}
        {decisionInWords(event)}
      </span>
    </li>
  );
}

/** "denied" alone does not say what was asked for, except for a grant. */
function attemptOf({ action, allowed }: AuditEvent): string {
  return allowed || action === "grant" ? "" : `${action} `;
}

function toneOfEvent({ action, allowed }: AuditEvent): string {
  if (!allowed) return "bad";
  if (action === "grant") return "good";
  return action === "expire" || action === "break" || action === "revoke" ? "warn" : "quiet";
}

function isQuiet(action: string): boolean {
  return action === "renew" || action === "use";
}

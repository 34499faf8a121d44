/** Every decision about a lease, the newest first, in words. */

import { useMemo, useState } from "preact/hooks";
import { type AuditEvent, decisionInWords } from "solehold/browser";
import { Panel, Segmented } from "../../ui/components.tsx";
import { isoOf, timeOf } from "../format.ts";

const SHOWN = 60;

export interface DecisionsProps {
  readonly events: readonly AuditEvent[];
  readonly isLoading: boolean;
  /** Where older ones are. */
  readonly auditHref: string;
}

export function Decisions({ events, isLoading, auditHref }: DecisionsProps) {
  const [which, setWhich] = useState<"some" | "all">("some");
  const [limit, setLimit] = useState(SHOWN);
  const wanted = useMemo(() => linesOf(events, which), [events, which]);
  return (
    <Panel
      id="decisions"
      title="Decisions"
      kind="decisions"
      aside={
        <Segmented
          label="Which"
          choices={[
            { value: "some", label: "without renewals" },
            { value: "all", label: "all" },
          ]}
          value={which}
          onChange={setWhich}
        />
      }
    >
      {wanted.length === 0 && (
        <p class="muted pad">{isLoading ? "Loading…" : "The audit has nothing about it."}</p>
      )}
      <ol class="events">
        {wanted.slice(0, limit).map(({ event, times }) => (
          <EventLine
            key={`${event.at} ${event.traceId} ${event.action} ${event.reason}`}
            event={event}
            times={times}
          />
        ))}
      </ol>
      {wanted.length > limit && (
        <button type="button" class="button quiet" onClick={() => setLimit(limit + SHOWN * 4)}>
          Show more of {wanted.length}
        </button>
      )}
      {wanted.length > 0 && wanted.length <= limit && (
        <p class="pad">
          <a href={auditHref}>Search the audit of this key</a>
        </p>
      )}
    </Panel>
  );
}

interface Line {
  readonly event: AuditEvent;
  readonly times: number;
}

/** Who waits is often decided on many times with one answer: without renewals those are one line, that of the last. */
function linesOf(events: readonly AuditEvent[], which: "some" | "all"): readonly Line[] {
  if (which === "all") return events.map((event) => ({ event, times: 1 }));
  const lines: Line[] = [];
  for (const event of events.filter(({ action, allowed }) => !allowed || !isQuiet(action))) {
    const last = lines.at(-1);
    if (last !== undefined && isSameDenial(event, last.event))
      lines[lines.length - 1] = { ...last, times: last.times + 1 };
    else lines.push({ event, times: 1 });
  }
  return lines;
}

function isSameDenial(a: AuditEvent, b: AuditEvent): boolean {
  const isSame = a.holder === b.holder && a.action === b.action && a.reason === b.reason;
  return isSame && !a.allowed && !b.allowed;
}

export function EventLine(props: { event: AuditEvent; times?: number; withKey?: boolean }) {
  const { event, times = 1, withKey = false } = props;
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
        {times > 1 && <span class="muted">, the last of {times} times</span>}
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

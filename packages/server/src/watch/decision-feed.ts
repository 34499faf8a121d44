/** Decisions as they enter the audit, for those who follow them live. Nothing is kept: the trail has them. */
import { type AuditEvent, type AuditFilter, encodeSse, matchesEvent } from "solehold/internal";
import type { FanOut } from "./fan-out.ts";
import type { EventSource } from "./sse.ts";

export type DecisionFeed = FanOut<AuditEvent>;

/** Events that a slow reader misses are counted, and it gets their number before the next one that it does get. */
export function decisionEvents(
  feed: DecisionFeed,
  filter: AuditFilter,
  maxBufferedBytes: number,
): EventSource {
  return (writer) => {
    let missed = 0;
    writer.write(encodeSse({ event: "watching", data: "{}" }));
    return feed.add(filter.tenant ?? null, {
      push: (decision) => {
        if (!matchesEvent(decision, filter)) return;
        if (writer.buffered() > maxBufferedBytes) {
          missed += 1;
          return;
        }
        if (missed > 0) writer.write(encodeSse({ event: "missed", data: JSON.stringify({ missed }) }));
        missed = 0;
        writer.write(encodeSse({ event: "decided", data: JSON.stringify(decision) }));
      },
      missed: (count) => {
        missed += count;
      },
    });
  };
}

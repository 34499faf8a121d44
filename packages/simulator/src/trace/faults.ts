/** What went wrong in a run, from its time-line: what lasts with its end, what happens in an instant without. */
import type { TimelineEntry } from "../world/world.ts";
import type { TracedFault } from "./trace.ts";
import { laneOf } from "./tracer.ts";

const KINDS: ReadonlySet<string> = new Set([
  "pause",
  "suspend",
  "wall step",
  "clock rate",
  "cut",
  "clogged",
  "lost",
  "crashes",
  "disk full",
  "record damaged",
  "clock jump",
  "forgets",
  "fail-before",
  "lost-reply",
  "late-apply",
  "conflict-unknown",
  "read-fail",
]);

/** What ends these; everything else knows its end when it begins. */
const ENDED_BY: Readonly<Record<string, string>> = { cut: "restored", crashes: "starts" };

export function faultsOf(timeline: readonly TimelineEntry[], endMs: number): readonly TracedFault[] {
  return timeline.flatMap((entry, index) => {
    const { atMs, label, text } = entry;
    const who = laneOf(entry.who);
    if (!KINDS.has(label) || atMs > endMs) return [];
    const untilMs = entry.untilMs ?? endOf(timeline.slice(index + 1), entry, endMs);
    return [{ who, kind: label, text, atMs, untilMs }];
  });
}

function endOf(
  later: readonly TimelineEntry[],
  { who, label, text, atMs }: TimelineEntry,
  endMs: number,
): number {
  const by = ENDED_BY[label];
  if (by === undefined) return atMs;
  const end = later.find(
    (each) =>
      each.label === by &&
      laneOf(each.who) === laneOf(who) &&
      (label !== "cut" || each.text === text.replace(label, by)),
  );
  return end?.atMs ?? endMs;
}

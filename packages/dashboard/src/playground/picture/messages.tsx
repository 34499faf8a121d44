/** Messages as slanted lines: what is late leans, what is lost ends in a cross. */
import type { Trace } from "@solehold/simulator";
import { BAR, type Frame } from "./geometry.ts";

/** A message that takes longer than this part of the picture is late. */
const LATE_PART = 1 / 25;
const LOST_DROP = 22;

export function Messages({
  frame,
  messages,
  small,
}: {
  readonly frame: Frame;
  readonly messages: Trace["messages"];
  readonly small: boolean;
}) {
  const lateMs = (frame.span.toMs - frame.span.fromMs) * LATE_PART;
  return (
    <g class="messages">
      {messages.map((message, index) => {
        const from = frame.lanes.find(({ lane }) => lane.name === message.from);
        const to = frame.lanes.find(({ lane }) => lane.name === message.to);
        if (from === undefined || to === undefined) return null;
        const isWrite = message.label.startsWith("guarded write");
        const arrivedMs = message.arrivedMs === null ? null : Math.min(message.arrivedMs, frame.span.toMs);
        const late = arrivedMs !== null && arrivedMs - message.sentMs > lateMs;
        // In a small picture only what is remarkable is shown.
        if ((small || message.label === "event") && !late) return null;
        const down = to.top > from.top;
        const edge = isWrite || late ? BAR / 2 : BAR / 2 - 2;
        const [y1, y2] = [from.barY + (down ? edge : -edge), to.barY + (down ? -edge : edge)];
        const x1 = frame.x(message.sentMs);
        if (arrivedMs === null) {
          const y = down ? y1 + LOST_DROP : y1 - LOST_DROP;
          return (
            <g key={index} class="lost">
              <line x1={x1} y1={y1} x2={x1 + 3} y2={y} />
              <path d={`M${x1 - 1} ${y - 4}l8 8m0 -8l-8 8`} />
            </g>
          );
        }
        const kind = late ? (isWrite ? "late zombie" : "late") : isWrite ? "write" : "prompt";
        return <line key={index} class={kind} x1={x1} y1={y1} x2={frame.x(arrivedMs)} y2={y2} />;
      })}
    </g>
  );
}

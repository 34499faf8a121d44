/** What the guard of the protected resource said to each write. */
import type { TracedWrite, TraceLane } from "@solehold/simulator";
import { colourOf } from "./backdrop.tsx";
import type { Frame } from "./geometry.ts";

export function Writes({
  frame,
  writes,
  lanes,
}: {
  readonly frame: Frame;
  readonly writes: readonly TracedWrite[];
  readonly lanes: readonly TraceLane[];
}) {
  const box = frame.lanes.find(({ lane }) => lane.kind === "resource");
  if (box === undefined) return null;
  return (
    <g>
      {writes.map(({ atMs, who, accepted }, index) => {
        const x = frame.x(atMs);
        return accepted ? (
          <circle key={index} class={`accepted ${colourOf(who, lanes)}`} cx={x} cy={box.barY} r="5" />
        ) : (
          <g key={index} class="refused">
            <circle cx={x} cy={box.barY} r="8" />
            <path d={`M${x - 3.5} ${box.barY - 3.5}l7 7m0 -7l-7 7`} />
          </g>
        );
      })}
    </g>
  );
}

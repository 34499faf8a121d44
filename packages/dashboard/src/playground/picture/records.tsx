/** The store's lane: whose record is there, and until when. */
import type { TraceLane } from "@solehold/simulator";
import type { FenceNames } from "../state/words.ts";
import { colourOf } from "./backdrop.tsx";
import { BAR, type Frame, type Tenure } from "./geometry.ts";

export interface RecordsProps {
  readonly frame: Frame;
  readonly tenures: readonly Tenure[];
  readonly fences: FenceNames;
  readonly lanes: readonly TraceLane[];
  readonly small: boolean;
}

const LETTER_PX = 7;

export function Records({ frame, tenures, fences, lanes, small }: RecordsProps) {
  const box = frame.lanes.find(({ lane }) => lane.kind === "store");
  if (box === undefined) return null;
  const y = box.barY - BAR / 2 + 3;
  const height = BAR - 6;
  return (
    <g>
      {tenures.map(({ record, fromMs, toMs, endsMs, renewals }) => {
        const live = record.state === "held" || record.state === "revoked";
        const x = frame.x(fromMs);
        const until = live ? Math.max(x + 2, frame.x(Math.min(toMs, endsMs))) : x;
        const end = frame.x(toMs);
        const label = `${record.state === "held" ? record.holder : record.state} · ${fences.of(record.fence)}`;
        return (
          <g
            key={`${fromMs} ${record.fence}`}
            class={`record ${record.state} ${colourOf(laneOf(record.holder), lanes)}`}
          >
            {live && <rect class="bar" x={x} y={y} width={until - x} height={height} rx="3" />}
            {end - until > 2 && (
              <rect class="over" x={until} y={y} width={end - until} height={height} rx="3" />
            )}
            {live &&
              renewals.map((ms) => (
                <line key={ms} class="renewal" x1={frame.x(ms)} x2={frame.x(ms)} y1={y} y2={y + height} />
              ))}
            {!small && end - x > label.length * LETTER_PX + 12 && (
              <text class={live ? "" : "over-text"} x={x + 8} y={box.barY + 4}>
                {label}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

function laneOf(holder: string): string {
  return holder.split(".")[0] ?? holder;
}

/** The faults of a script, as boxes that can be moved and made longer with the pointer. */
import type { ScriptFault } from "@solehold/simulator";
import { useRef } from "preact/hooks";
import { faultName } from "../state/words.ts";
import { FAULT_ROW, type FaultBox, type Frame } from "./geometry.ts";

const GRIP = 9;
const LEAST_WIDTH = 14;
const STEP_MS = 100;

interface Drag {
  readonly startX: number;
  readonly fault: ScriptFault;
  readonly what: "move" | "end";
}

export interface FaultsProps {
  readonly frame: Frame;
  readonly faults: readonly FaultBox[];
  readonly onFault: ((index: number, fault: ScriptFault) => void) | null;
}

export function Faults({ frame, faults, onFault }: FaultsProps) {
  return (
    <g>
      {faults.map((box) => (
        <Fault key={box.index} frame={frame} box={box} onFault={onFault} />
      ))}
    </g>
  );
}

function Fault({ frame, box, onFault }: Omit<FaultsProps, "faults"> & { readonly box: FaultBox }) {
  const drag = useRef<Drag | null>(null);
  const { fault, index, y } = box;
  const x = frame.x(fault.atMs);
  const width = Math.max(LEAST_WIDTH, frame.x(Math.min(fault.atMs + fault.forMs, frame.span.toMs)) - x);
  const begin = (event: PointerEvent, what: Drag["what"]): void => {
    if (onFault === null || event.button !== 0) return;
    event.stopPropagation();
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    drag.current = { startX: event.clientX, fault, what };
  };
  const move = (event: PointerEvent): void => {
    const now = drag.current;
    if (now === null) return;
    event.stopPropagation();
    const byMs = frame.ms(frame.left + (event.clientX - now.startX)) - frame.span.fromMs;
    const back = frame.ms(frame.left + (now.startX - event.clientX)) - frame.span.fromMs;
    onFault?.(index, moved(now, event.clientX >= now.startX ? byMs : -back));
  };
  const end = (): void => {
    drag.current = null;
  };
  const events = { onPointerMove: move, onPointerUp: end, onPointerCancel: end };
  const label = faultName(fault);
  return (
    <g class={`fault ${fault.kind}`}>
      <rect
        class="box"
        x={x}
        y={y}
        width={width}
        height={FAULT_ROW - 4}
        rx="4"
        onPointerDown={(event) => begin(event, "move")}
        {...events}
      />
      {fault.forMs > 0 && (
        <rect
          class="grip"
          x={x + width - GRIP}
          y={y}
          width={GRIP}
          height={FAULT_ROW - 4}
          onPointerDown={(event) => begin(event, "end")}
          {...events}
        />
      )}
      <text x={width > label.length * 6.5 + 14 ? x + 7 : x + width + 5} y={y + 12}>
        {label}
      </text>
    </g>
  );
}

/** In steps of a tenth of a second: links stay short, and a fault can be put where it was. */
function moved({ fault, what }: Drag, byMs: number): ScriptFault {
  const step = (ms: number): number => Math.max(0, Math.round(ms / STEP_MS) * STEP_MS);
  return what === "move"
    ? { ...fault, atMs: step(fault.atMs + byMs) }
    : { ...fault, forMs: Math.max(STEP_MS, step(fault.forMs + byMs)) };
}

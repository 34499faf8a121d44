/** A trace with everything around it: how it ended, the picture, playback, the moment, the steps. */
import type { Script, ScriptFault, Trace } from "@solehold/simulator";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useWidth } from "../../ui/use-width.ts";
import { FaultEditor } from "../panel/fault-editor.tsx";
import { Now } from "../panel/now.tsx";
import { Steps } from "../panel/steps.tsx";
import { Transport } from "../panel/transport.tsx";
import { quietTimes, spanOf } from "../picture/geometry.ts";
import { Legend } from "../picture/legend.tsx";
import { Picture } from "../picture/picture.tsx";
import { stepAt, stepsOf } from "../state/moment.ts";
import { useKeys } from "../state/use-keys.ts";
import { usePlayer } from "../state/use-player.ts";
import type { ChangeView } from "../state/use-view.ts";
import type { View } from "../state/view.ts";
import { FenceNames, outcomeOf, timeIn } from "../state/words.ts";
import { Verdict } from "./verdict.tsx";

export interface StageProps {
  readonly trace: Trace;
  readonly view: View;
  readonly change: ChangeView;
  /** The world that somebody wrote; null where faults cannot be changed. */
  readonly script: Script | null;
  /** What can be done next, beside the verdict. */
  readonly next: ComponentChildren;
  readonly busy: boolean;
}

const NO_FAULTS: readonly ScriptFault[] = [];

export function Stage({ trace, view, change, script, next, busy }: StageProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const shownKey = view.key !== null && trace.keys.includes(view.key) ? view.key : (trace.keys[0] ?? "");
  const fences = useMemo(() => new FenceNames(trace), [trace]);
  const steps = useMemo(() => stepsOf(trace, shownKey, fences), [trace, shownKey, fences]);
  const span = useMemo(() => spanOf(trace), [trace]);
  const atMs = Math.min(Math.max(view.atMs ?? span.toMs, span.fromMs), span.toMs);
  const seek = useMemo(() => (ms: number) => change({ atMs: ms >= span.toMs ? null : ms }), [change, span]);
  const faults = script === null ? NO_FAULTS : (view.faults ?? script.faults);
  const quiet = useMemo(() => quietTimes(trace, span, faults), [trace, span, faults]);
  const player = usePlayer(atMs, span.toMs, span.fromMs, view.speed, quiet, seek);
  const current = stepAt(steps, atMs);
  const goTo = (ms: number): void => {
    player.stop();
    seek(ms);
  };
  const step = (by: -1 | 1): void => {
    const now = steps[current]?.atMs ?? span.fromMs;
    const target =
      by > 0
        ? steps.find((each) => each.atMs > atMs + 1e-3)
        : steps.findLast((each) => each.atMs < now - 1e-3);
    goTo(target?.atMs ?? (by > 0 ? span.toMs : span.fromMs));
  };
  useKeys({ toggle: player.toggle, step, seek: (to) => goTo(to === "start" ? span.fromMs : span.toMs) });
  const setFaults = (changed: readonly ScriptFault[]): void => change({ faults: changed });
  const said = steps[current];
  return (
    <div class={busy ? "stage busy" : "stage"}>
      <Verdict trace={trace} summary={outcomeOf(trace, shownKey)} fences={fences}>
        {next}
      </Verdict>
      <div class="stage-columns">
        <div class="stage-main">
          <figure class="panel picture-card">
            <div ref={box} class="picture-box">
              {width > 0 && (
                <Picture
                  trace={trace}
                  shownKey={shownKey}
                  width={width}
                  atMs={atMs}
                  faults={faults}
                  onSeek={goTo}
                  onFault={
                    script === null
                      ? null
                      : (index, fault) =>
                          setFaults(faults.map((each, position) => (position === index ? fault : each)))
                  }
                />
              )}
            </div>
            <Transport
              playing={player.playing}
              atMs={atMs}
              time={timeIn(trace, atMs, 2)}
              startMs={span.fromMs}
              endMs={span.toMs}
              speed={view.speed}
              onToggle={player.toggle}
              onStep={step}
              onSeek={goTo}
              onSpeed={(speed) => change({ speed })}
            />
            <figcaption>
              {trace.keys.length > 1 && (
                <label class="key-picker">
                  Key{" "}
                  <select
                    class="input"
                    value={shownKey}
                    onChange={(event) => change({ key: event.currentTarget.value })}
                  >
                    {trace.keys.map((key) => (
                      <option key={key} value={key}>
                        {key}
                      </option>
                    ))}
                  </select>
                </label>
              )}
              <Legend trace={trace} />
            </figcaption>
          </figure>
          <p class="said" role="status" aria-live={player.playing ? "off" : "polite"}>
            <span class="said-time">{timeIn(trace, atMs, 2)}</span>{" "}
            {said?.text ?? "Nothing has happened yet."}
          </p>
          {script !== null && (
            <FaultEditor
              script={script}
              faults={faults}
              changed={view.faults !== null}
              atMs={atMs}
              onChange={setFaults}
              onReset={() => change({ faults: null })}
            />
          )}
        </div>
        <div class="stage-side">
          <Now trace={trace} shownKey={shownKey} atMs={atMs} fences={fences} />
          <Steps trace={trace} steps={steps} current={current} onSeek={goTo} />
        </div>
      </div>
    </div>
  );
}

/** Play, step, scrub, speed. */
import { SPEEDS, type Speed } from "../state/view.ts";

export interface TransportProps {
  readonly playing: boolean;
  readonly atMs: number;
  /** The same in words. */
  readonly time: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly speed: Speed;
  readonly onToggle: () => void;
  readonly onStep: (by: -1 | 1) => void;
  readonly onSeek: (ms: number) => void;
  readonly onSpeed: (speed: Speed) => void;
}

export function Transport(props: TransportProps) {
  const { playing, atMs, time, startMs, endMs, speed, onToggle, onStep, onSeek, onSpeed } = props;
  return (
    <fieldset class="transport" aria-label="Playback">
      <button
        type="button"
        class="button primary play"
        onClick={onToggle}
        aria-label={playing ? "Pause" : "Play"}
        title="Space"
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <path d={playing ? "M3 2h4v12h-4zM9 2h4v12h-4z" : "M3 1.5l11 6.5l-11 6.5z"} />
        </svg>
      </button>
      <button
        type="button"
        class="button"
        onClick={() => onStep(-1)}
        aria-label="One step back"
        title="Arrow left"
      >
        ‹
      </button>
      <button
        type="button"
        class="button"
        onClick={() => onStep(1)}
        aria-label="One step on"
        title="Arrow right"
      >
        ›
      </button>
      <input
        type="range"
        aria-label="Time"
        aria-valuetext={time}
        min={startMs}
        max={endMs}
        step={(endMs - startMs) / 500}
        value={atMs}
        onInput={(event) => onSeek(Number(event.currentTarget.value))}
      />
      <output class="clock">{time}</output>
      <label class="speed">
        <span class="visually-hidden">Speed</span>
        <select
          class="input"
          value={String(speed)}
          onChange={(event) => onSpeed(Number(event.currentTarget.value) as Speed)}
        >
          {SPEEDS.map((each) => (
            <option key={each} value={String(each)}>
              {each}×
            </option>
          ))}
        </select>
      </label>
    </fieldset>
  );
}

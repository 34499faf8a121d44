/** Plays: moves the time on with the screen, until the end. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Span } from "../picture/geometry.ts";

export interface Player {
  readonly playing: boolean;
  readonly toggle: () => void;
  readonly stop: () => void;
}

export function usePlayer(
  atMs: number,
  endMs: number,
  startMs: number,
  speed: number,
  /** Nothing happens then: it is passed over. */
  quiet: readonly Span[],
  onTime: (ms: number) => void,
): Player {
  const [playing, setPlaying] = useState(false);
  const now = useRef(atMs);
  now.current = atMs;
  useEffect(() => {
    if (!playing) return;
    let frame = 0;
    let last: number | null = null;
    const step = (at: number): void => {
      const played = now.current + (last === null ? 0 : at - last) * speed;
      const next = quiet.find(({ fromMs, toMs }) => played > fromMs && played < toMs)?.toMs ?? played;
      last = at;
      onTime(Math.min(next, endMs));
      if (next >= endMs) setPlaying(false);
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [playing, endMs, speed, quiet, onTime]);
  return {
    playing,
    toggle: () => {
      // At the end there is nothing left to play.
      if (!playing && now.current >= endMs - 1) onTime(startMs);
      setPlaying(!playing);
    },
    stop: () => setPlaying(false),
  };
}

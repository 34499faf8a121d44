/** Plays: moves the time on with the screen, until the end. */
import { useEffect, useRef, useState } from "preact/hooks";

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
      const next = now.current + (last === null ? 0 : at - last) * speed;
      last = at;
      onTime(Math.min(next, endMs));
      if (next >= endMs) setPlaying(false);
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [playing, endMs, speed, onTime]);
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

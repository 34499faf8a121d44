/** What components of several views use. */
import { useEffect, useReducer, useState } from "preact/hooks";

/** Draws the component again at most once in `everyMs` when the source changes. */
export function useChanges(subscribe: (listener: () => void) => () => void, everyMs = 0): void {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let lastMs = Number.NEGATIVE_INFINITY;
    const now = (): void => {
      timer = undefined;
      lastMs = performance.now();
      draw(undefined);
    };
    const stop = subscribe(() => {
      if (timer !== undefined) return;
      const waitMs = lastMs + everyMs - performance.now();
      if (waitMs <= 0) now();
      else timer = setTimeout(now, waitMs);
    });
    now();
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [subscribe, everyMs]);
}

/** Draws the component again every so often, while the page is seen. */
export function useTick(everyMs: number): void {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) draw(undefined);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}

/** As in the style sheet. */
const WIDE = matchMedia("(min-width: 760px)");

/** False on a phone. */
export function useWide(): boolean {
  const [isWide, setWide] = useState(WIDE.matches);
  useEffect(() => {
    const onChange = (): void => setWide(WIDE.matches);
    WIDE.addEventListener("change", onChange);
    return () => WIDE.removeEventListener("change", onChange);
  }, []);
  return isWide;
}

/** What components of several views use. */
import { useEffect, useReducer, useRef, useState } from "preact/hooks";

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

/** The size of an element's content, as it changes. */
export function useSize<Target extends HTMLElement>(): readonly [
  { readonly current: Target | null },
  { readonly width: number; readonly height: number },
] {
  const target = useRef<Target>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    if (target.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.contentRect ?? {};
      setSize({ width, height });
    });
    observer.observe(target.current);
    return () => observer.disconnect();
  }, []);
  return [target, size];
}

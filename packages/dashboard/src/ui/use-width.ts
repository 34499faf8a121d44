/** The width of an element's content, as it changes. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export function useWidth<Target extends HTMLElement>(): readonly [RefObject<Target | null>, number] {
  const target = useRef<Target>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (target.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(target.current);
    return () => observer.disconnect();
  }, []);
  return [target, width];
}

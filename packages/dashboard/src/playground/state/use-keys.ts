/** The keyboard: space plays, arrows step. Not while somebody types, or has a button under the finger. */
import { useEffect, useRef } from "preact/hooks";

export interface Keys {
  readonly toggle: () => void;
  readonly step: (by: -1 | 1) => void;
  readonly seek: (to: "start" | "end") => void;
}

const OWN_KEYS = "input, select, textarea, button, a, summary, [role=slider]";

export function useKeys(keys: Keys | null): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target } = event;
      const modified = event.ctrlKey || event.metaKey || event.altKey;
      const busy = target instanceof Element && target.closest(OWN_KEYS) !== null;
      // Arrows mean nothing to a button or a link, so they step from there too.
      const typing = target instanceof Element && target.closest("input, select, textarea") !== null;
      if (current.current === null || modified || typing) return;
      if (event.key === " " && !busy) current.current.toggle();
      else if (event.key === "ArrowRight") current.current.step(1);
      else if (event.key === "ArrowLeft") current.current.step(-1);
      else if (event.key === "Home" && !busy) current.current.seek("start");
      else if (event.key === "End" && !busy) current.current.seek("end");
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

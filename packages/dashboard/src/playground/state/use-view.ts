/** The view, kept in the URL. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { formatView, parseView, type View } from "./view.ts";

/** Browsers limit how often the URL may change; a run that plays changes it sixty times a second. */
const WRITE_AFTER_MS = 250;

export type ChangeView = (changes: Partial<View>) => void;

export function useView(): readonly [View, ChangeView] {
  const [view, setView] = useState<View>(() => parseView(location.hash));
  const written = useRef(location.hash);
  useEffect(() => {
    const read = (): void => {
      if (location.hash === written.current) return;
      written.current = location.hash;
      setView(parseView(location.hash));
    };
    addEventListener("hashchange", read);
    // It may have changed between the first picture and this.
    read();
    return () => removeEventListener("hashchange", read);
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => {
      const hash = formatView(view);
      if (hash === location.hash) return;
      const isOther = location.hash !== "" && hash.split("?")[0] !== location.hash.split("?")[0];
      written.current = hash;
      if (isOther) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
    }, WRITE_AFTER_MS);
    return () => clearTimeout(timer);
  }, [view]);
  const change = useCallback(
    (changes: Partial<View>) => setView((before) => ({ ...before, ...changes })),
    [],
  );
  return [view, change];
}

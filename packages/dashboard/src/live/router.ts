/** The address: which view, and its state, all in the hash, so that a link shows what its sender saw. */
import { useEffect, useState } from "preact/hooks";

export const VIEWS = ["leases", "lease", "activity", "audit", "server"] as const;
export type View = (typeof VIEWS)[number];
export type Params = Readonly<Record<string, string>>;

export interface Route {
  readonly view: View;
  readonly params: Params;
}

export function parseHash(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const view = VIEWS.find((each) => each === path) ?? "leases";
  return { view, params: Object.fromEntries(new URLSearchParams(search)) };
}

export function hrefOf(view: View, params: Params = {}): string {
  const given = Object.entries(params).filter(([, value]) => value !== "");
  const search = new URLSearchParams(given).toString();
  return `#/${view}${search === "" ? "" : `?${search}`}`;
}

export function leaseHref(tenant: string, name: string): string {
  return hrefOf("lease", { tenant, name });
}

/** Changes parameters of the view that is shown; an empty one is taken out. No entry in the history for each letter. */
export function setParams(changed: Params): void {
  const { view, params } = parseHash(location.hash);
  history.replaceState(null, "", hrefOf(view, { ...params, ...changed }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseHash(location.hash));
  useEffect(() => {
    const onChange = (): void => setRoute(parseHash(location.hash));
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return route;
}

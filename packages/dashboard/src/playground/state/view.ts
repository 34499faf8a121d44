/** What the page shows, as text: everything but a loaded file is in the part of the URL after the #. */
import type { ScriptFault, ScriptFaultKind } from "@solehold/simulator";

export const SPEEDS = [0.5, 1, 2, 4, 8] as const;
export type Speed = (typeof SPEEDS)[number];

export type Place =
  | { readonly kind: "case"; readonly id: string }
  | { readonly kind: "seed"; readonly seed: number }
  | { readonly kind: "rules" }
  | { readonly kind: "file" };

export interface View {
  readonly place: Place;
  /** A planted bug, or null for the shipped code. */
  readonly bug: string | null;
  /** Null at the end of the run. */
  readonly atMs: number | null;
  readonly speed: Speed;
  /** Null as long as nobody has changed them. */
  readonly faults: readonly ScriptFault[] | null;
  /** Which key is shown, where there are several; null for the first. */
  readonly key: string | null;
  /** With which code every state of a small world is visited; null for not at all. */
  readonly explored: ExploredCode | null;
}

const EXPLORED_CODES = ["shipped", "broken"] as const;
export type ExploredCode = (typeof EXPLORED_CODES)[number];

/** What a link to a place shows at first. */
export const AT_START: Omit<View, "place"> = {
  bug: null,
  atMs: null,
  speed: 2,
  faults: null,
  key: null,
  explored: null,
};

const FIRST: Place = { kind: "case", id: "suspended-laptop" };

export function parseView(hash: string): View {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const values = new URLSearchParams(query);
  const at = values.get("t");
  const speed = Number(values.get("speed"));
  const faults = values.get("faults");
  const code = values.get("code");
  return {
    place: parsePlace(path),
    bug: code === null || code === "shipped" ? null : code,
    atMs: at === null || !Number.isFinite(Number(at)) ? null : Math.max(0, Number(at) * 1_000),
    speed: SPEEDS.find((each) => each === speed) ?? 2,
    faults: faults === null ? null : parseFaults(faults),
    key: values.get("key"),
    explored: EXPLORED_CODES.find((each) => each === values.get("explored")) ?? null,
  };
}

export function formatView({ place, bug, atMs, speed, faults, key, explored }: View): string {
  const values = new URLSearchParams();
  if (place.kind === "case" || place.kind === "seed") values.set("code", bug ?? "shipped");
  if (faults !== null) values.set("faults", formatFaults(faults));
  if (atMs !== null) values.set("t", (atMs / 1_000).toFixed(2));
  if (speed !== 2) values.set("speed", String(speed));
  if (key !== null) values.set("key", key);
  if (explored !== null) values.set("explored", explored);
  // Colons and tildes need no escape here, and links stay readable.
  const query = values.toString().replaceAll("%3A", ":").replaceAll("%7E", "~");
  return `#/${formatPlace(place)}${query === "" ? "" : `?${query}`}`;
}

export function parsePlace(path: string): Place {
  const [first = "", second = ""] = path.split("/");
  if (first === "rules") return { kind: "rules" };
  if (first === "file") return { kind: "file" };
  if (first === "seed") return { kind: "seed", seed: /^\d{1,9}$/.test(second) ? Number(second) : 1 };
  return first === "" ? FIRST : { kind: "case", id: first };
}

function formatPlace(place: Place): string {
  if (place.kind === "case") return place.id;
  return place.kind === "seed" ? `seed/${place.seed}` : place.kind;
}

function formatFaults(faults: readonly ScriptFault[]): string {
  return faults
    .map(({ kind, on, way = "", atMs, forMs, amount = "" }) =>
      [kind, on, way, Math.round(atMs), Math.round(forMs), amount].join(":"),
    )
    .join("~");
}

/** What is wrong in a link is left to the script's own check, which names the field. */
function parseFaults(text: string): readonly ScriptFault[] {
  return text
    .split("~")
    .filter((each) => each !== "")
    .map((each): ScriptFault => {
      const [kind = "", on = "", way = "", atMs = "", forMs = "", amount = ""] = each.split(":");
      return {
        kind: kind as ScriptFaultKind,
        on,
        atMs: Number(atMs),
        forMs: Number(forMs),
        ...(way === "" ? {} : { way: way as NonNullable<ScriptFault["way"]> }),
        ...(amount === "" ? {} : { amount: Number(amount) }),
      };
    });
}

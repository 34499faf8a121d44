/**
 * An export of a real audit as a trace: a lane for each holder, a bar for each time somebody held the lease. The audit
 * knows what was decided, not what holders believed, and has no messages; so nothing is judged.
 */
import {
  TRACE_FORMAT,
  TRACE_VERSION,
  type Trace,
  type TracedBelief,
  type TracedEvent,
  type TracedRecord,
} from "@solehold/simulator/trace";
import { isReason, REASONS } from "solehold/core";

/** The fields of an entry that are used. */
interface Entry {
  readonly at: number;
  readonly tenant: string;
  readonly key: string;
  readonly action: string;
  readonly allowed: boolean;
  readonly reason: string;
  readonly holder?: string;
  readonly fence?: string;
  readonly outcome: string;
  readonly detail?: Readonly<Record<string, string | number | boolean>>;
}

/** The end of a tenure that has none in the audit. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;
const MOST_HOLDERS = 12;
/** What ends a grant, and how the end is called. */
const ENDS: Readonly<Record<string, string>> = {
  release: "released",
  revoke: "revoked",
  expire: "expired",
  handoff: "released",
};

export function auditTrace(text: string, title: string): Trace {
  const entries = text
    .split("\n")
    .map((line, index) => ({ line, index }))
    .filter(({ line }) => line.trim() !== "")
    .map(({ line, index }) => entryOf(line, index + 1))
    .sort((a, b) => a.at - b.at);
  const first = entries[0];
  if (first === undefined)
    throw new RangeError("the file has no entries: write one with solehold audit export");
  const endMs = Math.max(1_000, ((entries.at(-1)?.at ?? first.at) - first.at) * 1.02);
  const byKey = new Map<string, Entry[]>();
  for (const entry of entries) {
    const known = byKey.get(keyOf(entry));
    if (known === undefined) byKey.set(keyOf(entry), [entry]);
    else known.push(entry);
  }
  const held = [...byKey].flatMap(([key, own]) => tenuresOf(own, key, first.at));
  const beliefs = held.map(({ belief }) => belief);
  return {
    format: TRACE_FORMAT,
    version: TRACE_VERSION,
    title,
    ttlMs: endMs,
    endMs,
    originMs: first.at,
    keys: busiestFirst([...byKey.keys()], beliefs),
    lanes: [
      ...holdersOf(beliefs).map((name) => ({ name, kind: "node", rate: 1 }) as const),
      { name: "store", kind: "store", rate: 1 },
    ],
    beliefs,
    records: held.flatMap(({ records }) => records).sort((a, b) => a.atMs - b.atMs),
    writes: [],
    messages: [],
    faults: [],
    events: entries.map((entry) => eventOf(entry, first.at)),
    violation: null,
    expectations: null,
  };
}

function entryOf(line: string, number: number): Entry {
  let value: Partial<Entry>;
  try {
    value = JSON.parse(line) as Partial<Entry>;
  } catch {
    throw new RangeError(`line ${number} is no JSON: an audit export has one entry in each line`);
  }
  const wrong = (["tenant", "key", "action", "reason", "outcome"] as const).find(
    (field) => typeof value[field] !== "string",
  );
  if (wrong !== undefined || typeof value.at !== "number")
    throw new RangeError(
      `line ${number} is no audit entry: its "${wrong ?? "at"}" is ${JSON.stringify(value[wrong ?? "at"])}`,
    );
  return value as Entry;
}

function keyOf({ tenant, key }: Entry): string {
  return tenant === "default" ? key : `${tenant}/${key}`;
}

interface Held {
  readonly belief: TracedBelief;
  readonly records: readonly TracedRecord[];
}

function tenuresOf(entries: readonly Entry[], key: string, originMs: number): readonly Held[] {
  const done: Held[] = [];
  let open: { readonly grant: Entry; readonly fence: string } | null = null;
  const close = (at: number | null, end: string | null): void => {
    if (open === null) return;
    done.push(heldOf(key, open.grant, open.fence, originMs, at, end));
    open = null;
  };
  for (const entry of entries) {
    if (!entry.allowed || (entry.outcome !== "applied" && entry.action !== "expire")) continue;
    if (entry.action === "grant") {
      close(entry.at, "superseded");
      open = { grant: entry, fence: plainFence(entry.fence) };
    } else if (ENDS[entry.action] !== undefined) close(entry.at, ENDS[entry.action] ?? null);
  }
  close(null, null);
  return done;
}

function heldOf(
  key: string,
  grant: Entry,
  fence: string,
  originMs: number,
  at: number | null,
  end: string | null,
): Held {
  const who = grant.holder ?? "?";
  const [fromMs, toMs] = [grant.at - originMs, at === null ? null : at - originMs];
  const belief = { who, key, fence, fromMs, toMs, abortedMs: toMs, end };
  const shared = { key, holder: who, fence, successor: null };
  const started: TracedRecord = {
    ...shared,
    atMs: fromMs,
    state: "held",
    endsMs: toMs ?? NEVER_MS,
  };
  if (toMs === null || end === "superseded" || end === "expired") return { belief, records: [started] };
  const state = end === "revoked" ? "revoked" : "released";
  return { belief, records: [started, { ...shared, atMs: toMs, state, endsMs: toMs }] };
}

function plainFence(fence = "0"): string {
  return fence.replace(/^0+(?=\d)/, "");
}

function holdersOf(beliefs: readonly TracedBelief[]): readonly string[] {
  const busiest = [...countsOf(beliefs, "who")].sort(([, a], [, b]) => b - a).slice(0, MOST_HOLDERS);
  return busiest.map(([who]) => who).sort();
}

function busiestFirst(keys: readonly string[], beliefs: readonly TracedBelief[]): readonly string[] {
  const counts = countsOf(beliefs, "key");
  return [...keys].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
}

function countsOf(beliefs: readonly TracedBelief[], field: "who" | "key"): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const belief of beliefs) counts.set(belief[field], (counts.get(belief[field]) ?? 0) + 1);
  return counts;
}

function eventOf(entry: Entry, originMs: number): TracedEvent {
  const { holder = "somebody", action, allowed, reason, detail } = entry;
  const why = isReason(reason) ? REASONS[reason].sentence : reason;
  const by = typeof detail?.heldBy === "string" ? ` (held by ${detail.heldBy})` : "";
  const text = allowed
    ? `${action}${entry.fence === undefined ? "" : `, fence ${plainFence(entry.fence)}`}`
    : `${action} refused: ${why}${by}`;
  return { atMs: entry.at - originMs, who: holder, label: "audit", text: `audit ${text} [${keyOf(entry)}]` };
}

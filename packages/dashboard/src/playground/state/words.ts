/** A trace in words: promises, events, faults, and how it ended. */
import type { ScriptFault, Trace, TracedEvent } from "@solehold/simulator";
import { isReason, REASONS } from "solehold/core";

const PROMISES: Readonly<Record<string, string>> = {
  "mutual-belief": "No two believe at the same instant that they hold the lease",
  "belief-has-record": "Whoever believes has its own, unexpired record in the store",
  "fences-grow": "Every grant has a higher fence than all before it",
  "no-resurrection": "What is over stays over",
  ownership: "Only the owner renews and releases",
  reservations: "Handoffs and breaks are kept",
  "closed-periods": "A lease stays closed for the minimum hold and the delay that were asked for",
  "false-suspicion-safety": "A holder that stood still does not go on once its lease went to another",
  "false-suspicion-recovery": "A process that only looked dead is served again",
  "guarded-writes": "A guarded resource never takes an older fence after a newer one",
  "abort-in-time": "A holder's signal aborts no later than its lease ends",
  "abort-once": "A holder's signal aborts once",
  idempotency: "One idempotency key, one answer, never for other arguments",
  linearizability: "All answers fit one order of events",
  quorum: "A guarded key is granted to enough distinct signers",
  audit: "Every attempt is in the audit once, with the answer that was given",
  claimable: "A lease that is over can be taken",
  liveness: "After everything has healed everybody is served",
  slots: "Never more hold a name than it has slots",
  priority: "Of those who wait, the higher priority is served first",
  starvation: "Nobody waits for ever while others are served",
  "first-come-first-served": "First come, first served",
  "every-call-ends": "Every call ends",
  "no-leaks": "Nothing is left behind",
  "no-surprise": "Programs see only the errors that they were promised",
};

export function promiseOf(oracle: string): string {
  return PROMISES[oracle] ?? oracle;
}

export function seconds(ms: number, digits = 1): string {
  return `${(ms / 1_000).toFixed(digits)} s`;
}

/** An instant: of a run in seconds since its beginning, of an audit as the time of day, in UTC. */
export function timeIn({ originMs }: Pick<Trace, "originMs">, ms: number, digits = 1): string {
  return originMs === null ? seconds(ms, digits) : new Date(originMs + ms).toISOString().slice(11, 19);
}

/** Fences are large numbers; people compare them by their order. */
export class FenceNames {
  readonly #ranks: ReadonlyMap<string, number>;

  constructor({ beliefs, records, writes }: Pick<Trace, "beliefs" | "records" | "writes">) {
    const all = [...beliefs, ...records, ...writes]
      .map(({ fence }) => fence)
      .filter((fence) => fence !== "0");
    const sorted = [...new Set(all)].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
    this.#ranks = new Map(sorted.map((fence, index) => [fence, index + 1]));
  }

  of(fence: string): string {
    const rank = this.#ranks.get(fence);
    return rank === undefined ? fence : `#${rank}`;
  }

  /** The text with every fence by its short name. */
  in(text: string): string {
    return text.replaceAll(/(\bfence )?(\d{1,40})/g, (all, word: string | undefined, digits: string) =>
      this.#ranks.has(digits) && (word !== undefined || digits.length > 6)
        ? `${word ?? ""}${this.of(digits)}`
        : all,
    );
  }
}

function reasonText(reason: string): string {
  return isReason(reason) ? REASONS[reason].sentence : reason;
}

const WHY_STOPPED: Readonly<Record<string, string>> = {
  expired: "its time is over",
  unreachable: "its time is over and the store did not answer",
  released: "it releases",
  revoked: "it was revoked",
  superseded: "another holds it now",
  "store-lost-data": "the store lost data",
  crashed: "it crashed",
  closed: "it closed",
};

export function whyStopped(end: string): string {
  return WHY_STOPPED[end] ?? end;
}

/** "for 14000 ms" as "for 14 s". */
function inSeconds(text: string): string {
  return text.replaceAll(
    /\b(\d{4,}) ms\b/g,
    (_, ms: string) => `${Number((Number(ms) / 1_000).toFixed(1))} s`,
  );
}

/** Null for what is not worth a step. */
export function sentenceOf({ who, label, text }: TracedEvent, fences: FenceNames): string | null {
  const rest = inSeconds(fences.in(text.slice(label.length).trim()));
  const fence = /fence (#?\d+)/.exec(rest)?.[1] ?? "";
  const [op = "", how = ""] = label.split(" ");
  if (how === "applied") return op === "get" ? null : `${who} is answered: ${op} done, fence ${fence}`;
  if (how === "refused") return `${who} is refused: ${reasonText(rest)}`;
  if (how === "unsettled") return `${who} gets no answer to its ${op}`;
  if (how === "view") return null;
  switch (label) {
    case "audit":
      return `${who}: ${rest.replace(/ \[[^[]*\]$/, "")}`;
    case "starts":
    case "get":
    case "end of clock rate":
    case "heals":
      return null;
    case "acquire":
      return `${who} asks for the lease`;
    case "release":
      return `${who} releases the lease`;
    case "revoke":
      return `${who} revokes the lease`;
    case "handoff":
      return `${who} hands the lease on`;
    case "stops":
      return `${who} stops, fence ${fence}: ${whyStopped(rest.split(": ").at(-1) ?? "")}`;
    case "applied":
      return `The store writes: ${storeWrite(rest)}`;
    case "writes":
      return `${who} writes to the resource with fence ${fence}`;
    case "accepts":
      return `The guard accepts fence ${fence}`;
    case "refuses":
      return `The guard refuses fence ${fence}: it has seen a higher one`;
    case "pause":
      return who === "store" ? `The store freezes ${rest}` : `${who} is stopped ${rest}`;
    case "suspend":
      return `${who} falls asleep ${rest}`;
    case "end of pause":
      return who === "store" ? "The store is back" : `${who} runs again`;
    case "end of suspend":
      return `${who} wakes up`;
    case "cut":
      return `The link from ${who} ${rest} is cut`;
    case "restored":
      return `The link from ${who} ${rest} works again`;
    case "clogged":
      return `Messages from ${who} ${rest} are held up`;
    case "lost":
      return `A message from ${who} is lost: ${rest}`;
    case "crashes":
      return who === "store" ? `The store crashes ${rest}` : `${who} crashes`;
    case "wall step":
      return `The wall clock of ${who} is set by ${rest}`;
    case "clock rate":
      return `The clock of ${who} runs at ${rest}`;
    case "VIOLATION":
      return `Broken: ${rest.replace(/^[a-z-]+: /, "").replace("default/", "")}`;
    default:
      return `${who}: ${fences.in(text)}`.replace("default/", "");
  }
}

function storeWrite(rest: string): string {
  // The ticket of a waiter.
  if (rest.includes("$wait/"))
    return rest.replace(/:.*/, rest.endsWith("deleted") ? " does not wait any more" : " waits");
  const [, by = "", state = "", holder = ""] = /^([^:]+): \S+ (\w+) by (\S+),/.exec(rest) ?? [];
  const fence = /fence (#?\d+)/.exec(rest)?.[1] ?? "";
  if (by === "") return rest.replace("default/", "");
  return state === "held" ? `${holder} holds the lease, fence ${fence}` : `${state} by ${by}, fence ${fence}`;
}

const FAULTS: Readonly<Record<ScriptFault["kind"], string>> = {
  pause: "stopped",
  suspend: "asleep",
  crash: "crashed",
  cut: "cut off",
  slow: "slow",
  "clock-rate": "clock at",
  "wall-step": "wall clock set",
  "clock-jump": "clock jumps",
  "lost-writes": "writes lost",
};

const WAYS = { requests: "requests", replies: "replies", both: "link", writes: "writes" } as const;

export function faultName({ kind, on, way = "both", amount = 0 }: ScriptFault): string {
  switch (kind) {
    case "pause":
      return on === "store" ? "frozen" : FAULTS.pause;
    case "cut":
      return way === "both" ? "cut off" : `${WAYS[way]} lost`;
    case "slow":
      return `${WAYS[way]} held up`;
    case "clock-rate":
      return `clock at ${amount}×`;
    case "wall-step":
    case "clock-jump":
      return `${FAULTS[kind]} ${amount > 0 ? "+" : ""}${seconds(amount, 0)}`;
    default:
      return FAULTS[kind];
  }
}

/** Who held the lease and whether all promises held, in a sentence or two. */
export function outcomeOf(trace: Trace, key: string): string {
  const { beliefs, violation, writes, endMs } = trace;
  const at = (ms: number): string => timeIn(trace, ms);
  const holders = beliefs
    .filter((each) => each.key === key)
    .sort((a, b) => a.fromMs - b.fromMs)
    .map(({ who, fromMs, toMs }) =>
      toMs !== null && at(fromMs) === at(toMs)
        ? `${who} for a moment at ${at(fromMs)}`
        : `${who} from ${at(fromMs)} to ${toMs === null ? "the end" : at(toMs)}`,
    );
  const refused = writes.filter((each) => each.key === key && !each.accepted).length;
  const held =
    holders.length === 0
      ? "Nobody holds the lease."
      : `The lease is held by ${holders.slice(0, 6).join(", then ")}.`;
  const guard = refused === 0 ? "" : ` The guard refuses ${refused} ${refused === 1 ? "write" : "writes"}.`;
  const late = violation !== null && violation.atMs > endMs ? " (found when everything was over)" : "";
  return violation === null ? `${held}${guard}` : `${held}${guard}${late}`;
}

/**
 * Decisions in words, and the answer to "why did my job not run?". Pure: from audit entries to sentences. A sentence never
 * says more than the entries do, and never how somebody could get what was denied.
 */
import { isReason, REASONS } from "../core/index.ts";
import type { AuditEvent } from "./entry.ts";
import { auditedFence, historyOf, type Tenure, waitedMsOf } from "./history.ts";

/** "1.5 s", "3 min 20 s", "2 h 5 min", "4 d 3 h". */
export function durationInWords(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const pair = (large: number, unit: string, small: number, smaller: string): string =>
    small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, "min", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** What was decided, as one line without its subject's name: "denied: held by worker-3 for another 12 s". */
export function decisionInWords(event: AuditEvent): string {
  const waited = waitedMsOf(event);
  const wait = waited === 0 ? "" : ` after waiting ${durationInWords(waited)}`;
  if (!event.allowed) return `denied${wait}: ${denialInWords(event)}`;
  const fence = auditedFence(event);
  switch (event.action) {
    case "grant":
      return `granted with fence ${fence}${wait}`;
    case "renew":
      return "renewed";
    case "release":
      return "released";
    case "use":
      return "may be used";
    case "resume":
      return "resumed from persisted state";
    case "handoff":
      return "offered to a successor";
    case "revoke":
      return "revoked by an operator";
    case "break":
      return "asked for by an operator: it can no longer be prolonged past the period";
    case "expire":
      return "expired: it was not renewed in time";
    case "repair":
      return event.outcome === "applied" ? "its damaged record was replaced" : "its record needed no repair";
    default:
      return event.action;
  }
}

function denialInWords({ reason, at, detail, outcome }: AuditEvent): string {
  if (outcome === "unknown") return "the store did not confirm it: whether it was granted is not known";
  const { heldBy, heldUntilMs } = detail ?? {};
  if (reason === "LEASE_HELD_BY_OTHER" && typeof heldBy === "string") {
    const left = typeof heldUntilMs === "number" ? heldUntilMs - at : 0;
    return `held by ${heldBy}${left > 0 ? ` for another ${durationInWords(left)}` : ""}`;
  }
  if (reason === "QUORUM_NOT_MET" && typeof detail?.required === "number")
    return `${detail.received} of ${detail.required} approvals`;
  return isReason(reason) ? REASONS[reason].sentence : reason;
}

export interface Question {
  /** When the job should have run. */
  readonly atMs: number;
  /** Whose job it was; anybody's when absent. */
  readonly holder?: string;
  /** How far from that time an attempt may be. */
  readonly withinMs?: number;
}

export interface WhyAnswer {
  readonly answer: string;
  /** The entries that it rests on. */
  readonly because: readonly AuditEvent[];
}

const WITHIN_MS = 300_000;
const LATE_MS = 1_000;

/** `events`: of one lease, at least those around the time. `timeOf` writes an instant for the reader. */
export function whyNotRun(
  events: readonly AuditEvent[],
  question: Question,
  timeOf: (ms: number) => string = (ms) => new Date(ms).toISOString(),
): WhyAnswer {
  const { atMs, holder, withinMs = WITHIN_MS } = question;
  const who = holder ?? "nobody in particular";
  const attempts = events
    .filter((event) => event.action === "grant" && Math.abs(event.at - waitedMsOf(event) - atMs) <= withinMs)
    .filter((event) => holder === undefined || event.holder === holder)
    .toSorted((a, b) => distance(a, atMs) - distance(b, atMs));
  const { tenures } = historyOf(events);
  const [attempt] = attempts;
  if (attempt === undefined) {
    const begins = events.some(({ allowed, at }) => allowed && at <= atMs);
    return notAsked(tenures, begins ? "It was free then." : NOTHING_BEFORE, question, withinMs, timeOf);
  }
  const tenure = tenures.find(({ fence }) => attempt.allowed && fence === auditedFence(attempt));
  if (tenure !== undefined) {
    const askedMs = attempt.at - waitedMsOf(attempt);
    const blocker = askedMs < attempt.at ? blockerInWords(heldAt(tenures, askedMs), timeOf) : "";
    return { answer: `${ranInWords(attempt, tenure, atMs, timeOf)}${blocker}`, because: [attempt] };
  }
  const name = attempt.holder ?? who;
  const later = events
    .filter(({ action, allowed, at }) => action === "grant" && allowed && at > attempt.at)
    .filter((event) => event.holder === attempt.holder)
    .toSorted((a, b) => a.at - b.at)[0];
  const then = later === undefined ? "" : ` It was granted later, at ${timeOf(later.at)}.`;
  const by = attempt.detail?.heldBy;
  const others = tenures.filter(({ holder }) => holder === by);
  const blocker = blockerInWords(heldAt(others, attempt.at), timeOf);
  return {
    answer: `${name} asked at ${timeOf(attempt.at)} and was ${decisionInWords(attempt)}.${blocker}${then}`,
    because: later === undefined ? [attempt] : [attempt, later],
  };
}

/** From when it asked, which for a waiter is before its decision. */
function distance(event: AuditEvent, atMs: number): number {
  const askedMs = event.at - waitedMsOf(event);
  return atMs >= askedMs && atMs <= event.at
    ? 0
    : Math.min(Math.abs(askedMs - atMs), Math.abs(event.at - atMs));
}

/** A trail may begin later than the lease: then nobody knows. */
const NOTHING_BEFORE = "The audit does not say that anybody held it then.";

function notAsked(
  tenures: readonly Tenure[],
  free: string,
  { atMs, holder }: Question,
  withinMs: number,
  timeOf: (ms: number) => string,
): WhyAnswer {
  const held = tenures.find(({ fromMs, toMs }) => fromMs <= atMs && (toMs === null || toMs > atMs));
  if (held !== undefined && (holder === undefined || held.holder === holder)) {
    const until = held.toMs === null ? "and holds it still" : `until ${timeOf(held.toMs)} (${held.end})`;
    const answer = `${held.holder} held it at that time, from ${timeOf(held.fromMs)} ${until}: if its work did not run, the cause is in the job itself.`;
    return { answer, because: [] };
  }
  const who = holder ?? "Nobody";
  const verb = holder === undefined ? "asked" : "did not ask";
  const others = held === undefined ? free : `${held.holder} held it then.`;
  const answer = `${who} ${verb} for it within ${durationInWords(withinMs)} of ${timeOf(atMs)}: the job was not started, or did not reach this server. ${others}`;
  return { answer, because: [] };
}

function ranInWords(
  attempt: AuditEvent,
  { holder, fence, fromMs, toMs, end }: Tenure,
  atMs: number,
  timeOf: (ms: number) => string,
): string {
  const waited = waitedMsOf(attempt);
  const wait = waited === 0 ? "" : ` after waiting ${durationInWords(waited)}`;
  const granted = `${holder} was granted it at ${timeOf(fromMs)} with fence ${fence}${wait}`;
  if (toMs === null)
    return `${granted} and holds it: if its work does not run, the cause is in the job itself.`;
  const lasted = `held it for ${durationInWords(toMs - fromMs)}`;
  switch (end) {
    case "expired":
      return `${granted}, ${lasted}, and lost it at ${timeOf(toMs)}: it was not renewed in time.`;
    case "revoked":
      return `${granted}, ${lasted}, and lost it at ${timeOf(toMs)}: an operator revoked it.`;
    case "superseded":
      return `${granted}, ${lasted}, and lost it to a later grant at ${timeOf(toMs)}.`;
    default: {
      if (toMs < atMs)
        return `${granted}, ${lasted}, and ended it itself at ${timeOf(toMs)}, before the time asked for.`;
      const late = fromMs - atMs < LATE_MS ? "" : `, ${durationInWords(fromMs - atMs)} late`;
      return `It did run${late}: ${granted} and ${lasted}, until it was ${end}.`;
    }
  }
}

/** Who held it then; at the instant of a change, the one before. */
function heldAt(tenures: readonly Tenure[], atMs: number): Tenure | undefined {
  return tenures.find(({ fromMs, toMs }) => fromMs <= atMs && (toMs === null || toMs >= atMs));
}

function blockerInWords(held: Tenure | undefined, timeOf: (ms: number) => string): string {
  if (held === undefined) return "";
  if (held.toMs === null) return ` ${held.holder} has held it since ${timeOf(held.fromMs)}.`;
  return ` ${held.holder} held it from ${timeOf(held.fromMs)} until ${timeOf(held.toMs)} (${held.end}).`;
}

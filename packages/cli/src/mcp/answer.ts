/**
 * What an agent reads: a sentence, and the same as fields. The fence is in both. Names and notes were chosen by others:
 * they are quoted, and without control characters. No answer says how to take a lease from its holder.
 */
import type { Lease, LeaseHeldError, LeaseView } from "solehold";
import { REASONS } from "solehold/internal";
import type { JsonValue } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { isoTime } from "../format/lease.ts";
import { escapeControls } from "../format/terminal.ts";

export interface Answer {
  /** "failed": the agent does not have what it asked for. */
  readonly outcome: "done" | "failed";
  readonly text: string;
  readonly fields: { readonly [field: string]: JsonValue };
}

export function quoted(text: string): string {
  return escapeControls(JSON.stringify(text));
}

/** The session holds it. */
export function heldAnswer(lease: Lease, what: string): Answer {
  const { name, fence, ttlMs, expiresAtMs, resumeFromLedgerRequired: unfinished } = lease;
  const remainingMs = Math.floor(lease.remaining());
  const left = `for ${shortDuration(remainingMs)}, and renewed while this session lives`;
  const warning = unfinished
    ? " The last holder did not finish: look at what it left behind before you change anything."
    : "";
  return {
    outcome: "done",
    text: `${quoted(name)} ${what}: fence ${fence}, ${left}. Release it when you are done.${warning}`,
    fields: {
      ...{ name, held: true, fence: fence.toString(), ttlMs, remainingMs, expiresAtMs },
      lastHolderDidNotFinish: unfinished,
    },
  };
}

/** After an attempt to renew; the view says whether an operator asked for the lease. */
export function renewalAnswer(lease: Lease, what: "renewed" | "not renewed", view: LeaseView | null): Answer {
  const breakAtMs = view?.breakAtMs ?? null;
  const asked =
    breakAtMs === null ? "" : ` An operator asked for it: finish, and release it by ${isoTime(breakAtMs)}.`;
  const answer = heldAnswer(lease, "is renewed");
  const fields = { ...answer.fields, endsByMs: breakAtMs };
  if (what === "renewed") return { ...answer, text: `${answer.text}${asked}`, fields };
  const why = asked === "" ? " The store did not answer." : asked;
  const left = shortDuration(lease.remaining());
  const text = `${quoted(lease.name)} (fence ${lease.fence}) could NOT be renewed: it ends in ${left}.${why}`;
  return { outcome: "failed", text, fields };
}

/** Somebody else has it, or nobody may have it yet. */
export function deniedAnswer({ key, reason, retryAfterMs }: LeaseHeldError, view: LeaseView | null): Answer {
  const because = view?.live === true ? stateOf(view) : `${REASONS[reason].sentence}.`;
  const later =
    retryAfterMs === null ? "" : ` It may be free in ${shortDuration(retryAfterMs)}, if it is not renewed.`;
  const advice = "Do not do the work that needs it: call wait, or do something else.";
  return {
    outcome: "failed",
    text: `${quoted(key.name)} is NOT yours. ${because}${later} ${advice}`,
    fields: { ...viewFields(key.name, view), held: false, reason },
  };
}

/** The session had it, and may not act under it any more. */
export function lostText({ name, fence, lossReason }: Lease): string {
  return `You LOST ${quoted(name)} (fence ${fence}): ${lossReason ?? "expired"}. Stop the work that needs it.`;
}

export function viewAnswer(name: string, view: LeaseView | null): Answer {
  const text =
    view === null
      ? `${quoted(name)} is free; nobody ever had it.`
      : view.live
        ? stateOf(view)
        : `${quoted(name)} is free: its last holder was ${quoted(view.holder)} (fence ${view.fence}).${reservedFor(view)}`;
  return { outcome: "done", text, fields: viewFields(name, view) };
}

export function viewFields(name: string, view: LeaseView | null): { readonly [field: string]: JsonValue } {
  if (view === null) return { name, holder: null, fence: null, expiresAtMs: null };
  const { live, holder, fence, expiresAtMs, note, handoff, breakAtMs } = view;
  return {
    name,
    holder: live ? holder : null,
    fence: fence.toString(),
    expiresAtMs: live ? expiresAtMs : null,
    note,
    successor: handoff?.successor ?? null,
    endsByMs: breakAtMs,
  };
}

/** One live lease in a sentence. */
export function stateOf(view: LeaseView): string {
  const { key, holder, fence, expiresAtMs, remainingMs, note } = view;
  const until = `until ${isoTime(expiresAtMs)} (for ${shortDuration(remainingMs)}) unless it renews`;
  const about = note === "" ? "" : `, note ${quoted(note)}`;
  return `${quoted(key.name)} is held by ${quoted(holder)}, fence ${fence}, ${until}${about}.`;
}

function reservedFor({ handoff }: LeaseView): string {
  if (handoff === null) return "";
  return ` It is reserved for ${quoted(handoff.successor)} until ${isoTime(handoff.deadlineMs)}.`;
}

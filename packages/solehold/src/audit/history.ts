/**
 * The history of one lease, from its audit entries: who held it, from when to when, how each tenure ended, and who waited.
 * Pure. It shows what the entries say; where the trail begins later than the lease, so does the history.
 */
import type { AuditEvent } from "./entry.ts";

export type TenureEnd = "released" | "handed over" | "expired" | "revoked" | "superseded";

/** One grant and what became of it. */
export interface Tenure {
  readonly holder: string;
  /** Decimal. */
  readonly fence: string;
  readonly purpose: string;
  readonly fromMs: number;
  /** Null while it has not ended. */
  readonly toMs: number | null;
  readonly end: TenureEnd | null;
  /** How long its holder had waited for it. */
  readonly waitedMs: number;
  readonly renewedAtMs: readonly number[];
  /** When an operator asked for it. */
  readonly brokenAtMs: readonly number[];
}

/** An acquire that was not granted. */
export interface Denial {
  readonly holder: string;
  readonly atMs: number;
  readonly reason: string;
  /** How long it had waited when it was denied. */
  readonly waitedMs: number;
}

export interface LeaseHistory {
  /** The oldest first. */
  readonly tenures: readonly Tenure[];
  /** The oldest first. */
  readonly denials: readonly Denial[];
}

interface OpenTenure {
  tenure: Tenure;
}

/** `events`: of one lease, in any order. */
export function historyOf(events: readonly AuditEvent[]): LeaseHistory {
  const byFence = new Map<string, OpenTenure>();
  const denials: Denial[] = [];
  let last: OpenTenure | null = null;
  for (const event of inOrder(events)) {
    if (event.action === "grant" && !event.allowed) denials.push(denialOf(event));
    if (!event.allowed) continue;
    const fence = auditedFence(event);
    const open = fence === null ? null : (byFence.get(fence) ?? null);
    if (event.action === "grant" && fence !== null && open === null) {
      supersede(last, event.at);
      last = { tenure: tenureOf(event, fence) };
      byFence.set(fence, last);
    } else apply(open, event);
  }
  return { tenures: [...byFence.values()].map(({ tenure }) => tenure), denials };
}

/** By time; what has the same time stays as it was written, but an end comes before the grant that followed it. */
function inOrder(events: readonly AuditEvent[]): readonly AuditEvent[] {
  const sequence = (event: AuditEvent): number => (event as { sequence?: number }).sequence ?? 0;
  const rank = ({ action }: AuditEvent): number => (action === "grant" ? 1 : 0);
  const isHandOver = (a: AuditEvent, b: AuditEvent): boolean => a.fence !== b.fence && a.allowed && b.allowed;
  return events.toSorted(
    (a, b) => a.at - b.at || (isHandOver(a, b) ? rank(a) - rank(b) : 0) || sequence(a) - sequence(b),
  );
}

/** The decimal digits without the zeros that pad them; null where an event has no fence. */
export function auditedFence({ fence }: Pick<AuditEvent, "fence">): string | null {
  return fence === undefined ? null : fence.replace(/^0+(?=\d)/, "");
}

function tenureOf(event: AuditEvent, fence: string): Tenure {
  return {
    holder: event.holder ?? "",
    fence,
    purpose: event.purpose ?? "",
    fromMs: event.at,
    toMs: null,
    end: null,
    waitedMs: waitedMsOf(event),
    renewedAtMs: [],
    brokenAtMs: [],
  };
}

const END_OF_ACTION: Readonly<Record<string, TenureEnd>> = {
  release: "released",
  handoff: "handed over",
  expire: "expired",
  revoke: "revoked",
};

function apply(open: OpenTenure | null, { action, at }: AuditEvent): void {
  if (open === null) return;
  const { tenure } = open;
  const end = END_OF_ACTION[action];
  // A repeat of a grant or a renewal prolongs it; a repeat of its end changes nothing.
  if (action === "renew" || action === "grant")
    open.tenure = { ...tenure, renewedAtMs: [...tenure.renewedAtMs, at] };
  else if (action === "break") open.tenure = { ...tenure, brokenAtMs: [...tenure.brokenAtMs, at] };
  else if (end !== undefined && (tenure.end === null || tenure.end === "superseded"))
    open.tenure = { ...tenure, toMs: at, end };
}

/** A later grant means that it had ended, whatever the trail has of that. */
function supersede(open: OpenTenure | null, atMs: number): void {
  if (open !== null && open.tenure.end === null)
    open.tenure = { ...open.tenure, toMs: atMs, end: "superseded" };
}

function denialOf(event: AuditEvent): Denial {
  const { holder = "", at: atMs, reason } = event;
  return { holder, atMs, reason, waitedMs: waitedMsOf(event) };
}

export function waitedMsOf({ detail }: AuditEvent): number {
  return typeof detail?.waitedMs === "number" ? detail.waitedMs : 0;
}

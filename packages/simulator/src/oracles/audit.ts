/**
 * The audit equals what happened: every attempt that was answered is in it exactly once, with the outcome
 * that its caller got; every grant that the store took is in the trail of the process that asked
 * for it, as applied or as unknown; and no grant is in it that the store did not take.
 *
 * A trail in memory ends with its process. One in files is that of all lives of a machine, and has to have what
 * those that died had answered; an attempt that was under way when they died may be there or not. So may one whose caller
 * got the answer that the trail could not be written.
 */

import type { AuditEntry } from "solehold/internal";
import { AuditError, askedKey, formatFence, keyId, recordFence } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

/** An attempt as its caller saw it end. */
export interface AuditedAttempt {
  readonly traceId: string;
  readonly keyId: string;
  readonly outcome: { readonly kind: string; readonly cause?: Error };
}

export interface AuditedLife {
  readonly name: string;
  /** Infinity for a process that lives. */
  readonly diedMs: number;
  readonly answered: readonly AuditedAttempt[];
  /** How many attempts were begun under each trace. */
  readonly begun: ReadonlyMap<string, number>;
}

export interface AuditedTrail {
  readonly name: string;
  readonly entries: readonly AuditEntry[];
  readonly lives: readonly AuditedLife[];
}

interface TakenGrant {
  readonly by: string;
  readonly key: string;
  /** What was asked for; another key where the grant is one of several slots. */
  readonly asked: string;
  readonly generation: bigint;
  readonly fence: string;
}

export function audit(context: OracleContext, trails: () => readonly AuditedTrail[]): Oracle {
  const name = "audit";
  const grants: TakenGrant[] = [];
  return {
    name,
    onWrite: (write) => {
      const { after, by } = write;
      if (after === null || !isGrant(write) || after.key.name.startsWith("$")) return;
      // Servers hold leases of their own, beside their service.
      if (!context.keys.some(({ tenant }) => tenant === after.key.tenant)) return;
      const { generation } = after;
      const [key, asked] = [keyId(after.key), keyId(askedKey(after.key))];
      grants.push({ by, key, asked, generation, fence: formatFence(recordFence(after)) });
    },
    atEnd: () => {
      // A process without an answer cannot have audited it; the attempt is there as it ended for its caller.
      const lost = new Set(context.lostEffects().map((effect) => `${effect.keyId}@${effect.generation}`));
      // Of a life that ended, what it had answered is there; what it was about to answer may be.
      const mustBeAudited = ({ key, generation }: TakenGrant, { diedMs }: AuditedLife): boolean =>
        diedMs === Number.POSITIVE_INFINITY && !lost.has(`${key}@${generation}`);
      for (const trail of trails()) {
        const attempts = trail.entries.filter((entry) => entry.action !== "expire");
        const problem =
          missing(trail, attempts) ??
          unaudited(trail, attempts, grants, mustBeAudited) ??
          untrue(trail, attempts, grants, context.config.entry);
        if (problem !== null) context.fail(name, problem);
      }
    },
  };
}

function missing(trail: AuditedTrail, attempts: readonly AuditEntry[]): string | null {
  const byTrace = new Map<string, AuditEntry[]>();
  for (const entry of attempts) {
    const known = byTrace.get(entry.traceId);
    if (known === undefined) byTrace.set(entry.traceId, [entry]);
    else known.push(entry);
  }
  for (const [traceId, asked] of askedIn(trail)) {
    const problem = mismatch(asked, byTrace.get(traceId) ?? []);
    if (problem !== null) return `attempt ${traceId} ${problem}`;
  }
  return null;
}

/** What was asked under one trace: a waiter in a server's queue makes several attempts. */
interface Asked {
  readonly kinds: string[];
  /** Attempts that ended with their process. */
  unfinished: number;
}

function askedIn({ lives }: AuditedTrail): ReadonlyMap<string, Asked> {
  const all = new Map<string, Asked>();
  const askedUnder = (traceId: string): Asked => {
    const asked = all.get(traceId) ?? { kinds: [], unfinished: 0 };
    all.set(traceId, asked);
    return asked;
  };
  for (const { answered, begun, diedMs } of lives) {
    const isDead = diedMs < Number.POSITIVE_INFINITY;
    if (isDead) for (const [traceId, count] of begun) askedUnder(traceId).unfinished += count;
    for (const attempt of answered) {
      const asked = askedUnder(attempt.traceId);
      if (!isUnaudited(attempt)) asked.kinds.push(attempt.outcome.kind);
      if (isUnaudited(attempt)) asked.unfinished += isDead ? 0 : 1;
      else if (isDead) asked.unfinished -= 1;
    }
  }
  return all;
}

function mismatch({ kinds, unfinished }: Asked, entries: readonly AuditEntry[]): string | null {
  if (entries.length < kinds.length || entries.length > kinds.length + unfinished)
    return `is in the audit ${entries.length} times, answered ${kinds.length} times`;
  if (unfinished === 0) {
    const wrong = kinds.findIndex((each, index) => !fits(each, entries[index]?.outcome));
    return wrong < 0 ? null : `ended ${kinds[wrong]}, and the audit says ${entries[wrong]?.outcome}`;
  }
  const left = entries.map(({ outcome }) => outcome);
  for (const each of kinds) {
    const index = left.findIndex((outcome) => fits(each, outcome));
    if (index < 0) return `ended ${each}, and the audit says ${left.join(", ") || "nothing else"}`;
    left.splice(index, 1);
  }
  return null;
}

function fits(kind: string, audited: string | undefined): boolean {
  return kind === "unsettled" ? audited === "unknown" || audited === "none" : audited === kind;
}

function unaudited(
  { lives }: AuditedTrail,
  attempts: readonly AuditEntry[],
  grants: readonly TakenGrant[],
  mustBeAudited: (grant: TakenGrant, life: AuditedLife) => boolean,
): string | null {
  for (const life of lives) {
    for (const grant of grants) {
      const { by, key, asked, fence } = grant;
      if (by !== life.name || !mustBeAudited(grant, life)) continue;
      if (life.answered.some((attempt) => attempt.keyId === asked && isUnaudited(attempt))) continue;
      const isAudited = attempts.some(
        (entry) =>
          (isGrantOf(entry, key) && entry.fence === fence) ||
          (isGrantOf(entry, asked) && entry.outcome === "unknown"),
      );
      if (!isAudited) return `the grant of ${key} with fence ${fence} is not in the audit of ${by}`;
    }
  }
  return null;
}

/** A server may also answer a repeated request with a grant that another server made. */
function untrue(
  { name }: AuditedTrail,
  attempts: readonly AuditEntry[],
  grants: readonly TakenGrant[],
  entry: OracleContext["config"]["entry"],
): string | null {
  const machine = machineOf(name);
  const taken = new Set(
    grants.flatMap(({ by, key, fence }) =>
      entry === "server" || machineOf(by) === machine ? [`${key}@${fence}`] : [],
    ),
  );
  const made = attempts.find(
    (each) => each.action === "grant" && each.outcome === "applied" && !taken.has(idOf(each)),
  );
  return made === undefined
    ? null
    : `the audit of ${name} has a grant that the store did not make: ${idOf(made)}`;
}

/** Its caller got an unknown outcome, because the trail did not take it. */
function isUnaudited({ outcome }: AuditedAttempt): boolean {
  return outcome.kind === "unsettled" && outcome.cause?.cause instanceof AuditError;
}

function isGrantOf(entry: AuditEntry, key: string): boolean {
  return entry.action === "grant" && `${entry.tenant}/${entry.key}` === key;
}

function idOf({ tenant, key, fence }: AuditEntry): string {
  return `${tenant}/${key}@${fence}`;
}

/** Lives of one machine have its name, with a number. */
function machineOf(process: string): string {
  return process.split(".")[0] ?? process;
}

/**
 * Where the audit owns up to what is missing, as `audit-gap` entries: attempts that the disk refused, once it takes entries
 * again; and what a process that ended without a stop may have left in the store without an entry.
 *
 * Of the latter only grants that are still in the store can be named. One that another replica made, or a program that uses
 * the store directly, has no entry in this trail either, and is named with them.
 */
import type { LeaseView } from "solehold";
import {
  type AuditDetail,
  type AuditEvent,
  type AuditTrail,
  formatFence,
  type LeaseService,
  leaseId,
  pagesOf,
} from "solehold/internal";
import type { Logger } from "../telemetry/log.ts";

const GAP = { allowed: false, reason: "AUDIT_EVENTS_DROPPED", reasonCode: 0, traceId: "" } as const;

function gapEvent(at: number, detail: AuditDetail, about: Partial<AuditEvent> = {}): AuditEvent {
  return {
    ...{ at, tenant: "", key: "", leaseId: "", action: "audit-gap", ...GAP, outcome: "none", detail },
    ...about,
  };
}

/** The trail, with an entry that counts those that it refused, before the first that it takes again. */
export function withGapEntries(trail: AuditTrail): AuditTrail {
  let dropped = 0;
  let lastAt = 0;
  const report = async (): Promise<void> => {
    if (dropped === 0) return;
    const reported = dropped;
    dropped = 0;
    try {
      await trail.append(gapEvent(lastAt, { dropped: reported }));
    } catch (failure) {
      dropped += reported;
      throw failure;
    }
  };
  return {
    append: (event) => {
      report().catch(() => undefined);
      return trail.append(event)?.catch((failure: unknown) => {
        dropped += 1;
        lastAt = event.at;
        throw failure;
      });
    },
    flush: async () => {
      await report();
      await trail.flush();
    },
    head: () => trail.head(),
    query: (query) => trail.query(query),
    close: async () => {
      await report().catch(() => undefined);
      await trail.close();
    },
  };
}

/** Entries that a live grant is looked for in. Those under way when a process dies are far fewer. */
const LOOKED_AT = 10_000;
const MOST_NAMED = 1_000;

/** At a start, before the first entry: whether the process before this one stopped, and what it may have left. */
export async function reportUncleanEnd(
  service: LeaseService,
  tenants: readonly string[],
  log: Logger,
): Promise<void> {
  const newest = await service.audit.query({ order: "newest-first", limit: LOOKED_AT });
  const [last] = newest;
  if (last === undefined || last.action === "stop") return;
  const known = new Set(newest.map(({ tenant, key, fence }) => idOf(tenant, key, fence)));
  const sinceMs = newest.length < LOOKED_AT ? 0 : (newest.at(-1)?.at ?? 0);
  let found = 0;
  for (const tenant of tenants) {
    for await (const { key, live, grantedAtMs, holder, fence } of leasesOf(service, tenant)) {
      if (!live || grantedAtMs < sinceMs || known.has(idOf(tenant, key.name, formatFence(fence)))) continue;
      found += 1;
      if (found > MOST_NAMED) continue;
      const about = {
        tenant,
        key: key.name,
        leaseId: leaseId(key, fence),
        holder,
        fence: formatFence(fence),
      };
      await service.record(gapEvent(grantedAtMs, { cause: "live grant without an entry" }, about));
    }
  }
  const detail = { cause: "no stop before this start", after: last.sequence, liveGrantsWithoutEntry: found };
  await service.record(gapEvent(service.executor.storeNowMs(), detail));
  log.warn(detail, "the audit was not ended by a stop: what was under way then may have no entry");
}

function idOf(tenant: string, name: string, fence = ""): string {
  return `${tenant} ${name} ${fence}`;
}

async function* leasesOf({ executor }: LeaseService, tenant: string): AsyncIterable<LeaseView> {
  const query = { tenant, prefix: "", state: "held", limit: 1_000 } as const;
  for await (const { leases } of pagesOf((page) => executor.list(page), query)) yield* leases;
}

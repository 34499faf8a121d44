/**
 * Which approvals were used. Each use is a record of its own in the lease store, created on condition that
 * it is not there: the second use fails, in this process, in another replica, and after a restart.
 *
 * The record says by which attempt, and which generation the lease had then. The same attempt may come again, since its
 * answer may have been lost, and core decides by that generation whether it was granted already.
 *
 * A use that certainly led to nothing (the key was held, say) is taken back. A process that dies in between leaves
 * the approval used up: that is the safe side.
 */

import type { AcceptedApproval } from "../approvals/index.ts";
import { type LeaseKey, type LeaseRecord, systemRecord } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import {
  ABSENT,
  answerWithin,
  type ConditionalWrite,
  type LeaseStore,
  type StoredRecord,
  StoreError,
  type WriteResult,
} from "../store/index.ts";

/** Begins with `$`, so no lease can have such a name. */
const USED_PREFIX = "$approval/";
/** By which attempt it was used, in the record's metadata. */
const ATTEMPT = "attempt";
/** A store that does not answer must not hold a command for ever. */
const CALL_TIMEOUT_MS = 5_000;

export interface ApprovalClaim {
  readonly writes: readonly { readonly key: LeaseKey; readonly version: string }[];
  /** When this attempt used the approvals before, and the lease's generation then; null when this is their first use. */
  readonly usedBefore: { readonly generation: bigint; readonly atMs: number } | null;
}

/** What the store knows before a claim. */
export interface ApprovalUses {
  /** Those of the ids that another attempt used before. The same attempt, asked again, has used none. */
  readonly used: ReadonlySet<string>;
  /** That of the lease now; 0 where there is no record. */
  readonly generation: bigint;
}

export class UsedApprovals {
  readonly #store: LeaseStore;
  readonly #env: Env;

  constructor(store: LeaseStore, env: Env) {
    this.#store = store;
    this.#env = env;
  }

  async usesOf(lease: LeaseKey, approvalIds: readonly string[], attempt: string): Promise<ApprovalUses> {
    if (approvalIds.length === 0) return { used: new Set(), generation: 0n };
    const keys = approvalIds.map((id) => usedKey(lease.tenant, id));
    const { records } = await this.#answered(() => this.#store.read([...keys, lease]));
    const used = new Set(approvalIds.filter((_, index) => !isFreeFor(attempt, records[index] ?? ABSENT)));
    return { used, generation: recordIn(records[keys.length] ?? ABSENT)?.generation ?? 0n };
  }

  /** Takes all of them, or none and returns null when one was taken in the meantime. */
  async claim(
    tenant: string,
    accepted: readonly AcceptedApproval[],
    nowMs: number,
    attempt: string,
    generation: bigint,
  ): Promise<ApprovalClaim | null> {
    const writes: ConditionalWrite[] = accepted.map(({ approvalId, notAfterMs, signerId }) => {
      const key = usedKey(tenant, approvalId);
      const next = systemRecord({
        key,
        holder: signerId,
        generation,
        writtenAtMs: nowMs,
        // Until then the approval could be presented again; after that its window refuses it anyway.
        endedAtMs: notAfterMs,
        nonce: randomId(this.#env),
        metadata: { [ATTEMPT]: attempt },
      });
      return { key, expected: null, next };
    });
    const { results } = await this.#answered(() => this.#store.apply(writes));
    const taken = results.flatMap((result, index) => {
      const key = writes[index]?.key;
      return result.kind === "applied" && result.version !== null && key !== undefined
        ? [{ key, version: result.version }]
        : [];
    });
    const mine = results.filter((result) => result.kind === "conflict" && isUseBy(attempt, result.current));
    if (taken.length + mine.length === writes.length)
      return { writes: taken, usedBefore: usedBeforeIn(mine) };
    await this.unclaim({ writes: taken });
    const unknown = results.find((result) => result.kind === "unknown");
    if (unknown?.kind === "unknown") {
      throw new StoreError("timeout", "it is not known whether the approvals could be marked as used", {
        outcome: "not-applied",
        cause: unknown.cause,
      });
    }
    return null;
  }

  /** Best effort: what cannot be taken back stays used. */
  async unclaim({ writes }: Pick<ApprovalClaim, "writes">): Promise<void> {
    if (writes.length === 0 || !this.#store.capabilities.conditionalDelete) return;
    const removals = writes.map(({ key, version }) => ({ key, expected: version, next: null }));
    await this.#answered(() => this.#store.apply(removals)).catch(() => undefined);
  }

  #answered<Reply>(call: () => Promise<Reply>): Promise<Reply> {
    return answerWithin(this.#env, CALL_TIMEOUT_MS, "check of approvals", call);
  }
}

function isFreeFor(attempt: string, stored: StoredRecord): boolean {
  return stored.kind === "absent" || isUseBy(attempt, stored);
}

function isUseBy(attempt: string, stored: StoredRecord): boolean {
  return stored.kind === "found" && stored.record.metadata[ATTEMPT] === attempt;
}

function recordIn(stored: StoredRecord): LeaseRecord | null {
  return stored.kind === "found" ? stored.record : null;
}

/** Nothing is executed before all are claimed, so the last of the claims counts. */
function usedBeforeIn(conflicts: readonly WriteResult[]): ApprovalClaim["usedBefore"] {
  const [last] = conflicts
    .flatMap((result) => (result.kind === "conflict" ? (recordIn(result.current) ?? []) : []))
    .sort((a, b) => b.grantedAtMs - a.grantedAtMs);
  return last === undefined ? null : { generation: last.generation, atMs: last.grantedAtMs };
}

function usedKey(tenant: string, approvalId: string): LeaseKey {
  return { tenant, name: `${USED_PREFIX}${approvalId}` };
}

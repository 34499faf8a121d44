/**
 * Which approvals were used. Each use is a record of its own in the lease store, created on condition that
 * it is not there: the second use fails, in this process, in another replica, and after a restart.
 *
 * A use that led to nothing (the key was held, say) is taken back. A process that dies in between leaves
 * the approval used up: that is the safe side.
 */

import type { AcceptedApproval } from "../approvals/index.ts";
import { type LeaseKey, type LeaseRecord, NO_TOKEN_HASH } from "../core/index.ts";
import { type Env, randomId } from "../env/index.ts";
import {
  ABSENT,
  answerWithin,
  type ConditionalWrite,
  type LeaseStore,
  type StoredRecord,
  StoreError,
} from "../store/index.ts";

/** Begins with `$`, so no lease can have such a name. */
const USED_PREFIX = "$approval/";
/** A store that does not answer must not hold a command for ever. */
const CALL_TIMEOUT_MS = 5_000;

export interface ApprovalClaim {
  readonly writes: readonly { readonly key: LeaseKey; readonly version: string }[];
}

export class UsedApprovals {
  readonly #store: LeaseStore;
  readonly #env: Env;

  constructor(store: LeaseStore, env: Env) {
    this.#store = store;
    this.#env = env;
  }

  /** Those of the ids that another attempt used before. The same attempt, asked again, has used none. */
  async usedAmong(
    tenant: string,
    approvalIds: readonly string[],
    attempt: string,
  ): Promise<ReadonlySet<string>> {
    if (approvalIds.length === 0) return new Set();
    const keys = approvalIds.map((id) => usedKey(tenant, id));
    const { records } = await this.#answered(() => this.#store.read(keys));
    return new Set(approvalIds.filter((_, index) => !isFreeFor(attempt, records[index] ?? ABSENT)));
  }

  /** Takes all of them, or none and returns null when one was taken in the meantime. */
  async claim(
    tenant: string,
    accepted: readonly AcceptedApproval[],
    nowMs: number,
    attempt: string,
  ): Promise<ApprovalClaim | null> {
    const writes: ConditionalWrite[] = accepted.map(({ approvalId, notAfterMs, signerId }) => {
      const key = usedKey(tenant, approvalId);
      const nonce = randomId(this.#env);
      return { key, expected: null, next: useRecord(key, signerId, nowMs, notAfterMs, nonce, attempt) };
    });
    const { results } = await this.#answered(() => this.#store.apply(writes));
    const taken = results.flatMap((result, index) => {
      const key = writes[index]?.key;
      return result.kind === "applied" && result.version !== null && key !== undefined
        ? [{ key, version: result.version }]
        : [];
    });
    const mine = results.filter((result) => result.kind === "conflict" && isFreeFor(attempt, result.current));
    if (taken.length + mine.length === writes.length) return { writes: taken };
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
  async unclaim({ writes }: ApprovalClaim): Promise<void> {
    if (writes.length === 0 || !this.#store.capabilities.conditionalDelete) return;
    const removals = writes.map(({ key, version }) => ({ key, expected: version, next: null }));
    await this.#answered(() => this.#store.apply(removals)).catch(() => undefined);
  }

  #answered<Reply>(call: () => Promise<Reply>): Promise<Reply> {
    return answerWithin(this.#env, CALL_TIMEOUT_MS, "check of approvals", call);
  }
}

function isFreeFor(attempt: string, stored: StoredRecord): boolean {
  return stored.kind === "absent" || (stored.kind === "found" && stored.record.note === noteFor(attempt));
}

function noteFor(attempt: string): string {
  return `used by ${attempt}`;
}

function usedKey(tenant: string, approvalId: string): LeaseKey {
  return { tenant, name: `${USED_PREFIX}${approvalId}` };
}

/** Until `notAfterMs` the approval could be presented again; after that its window refuses it anyway. */
function useRecord(
  key: LeaseKey,
  signerId: string,
  nowMs: number,
  notAfterMs: number,
  nonce: string,
  attempt: string,
): LeaseRecord {
  return {
    key,
    holder: signerId,
    purpose: "StateWrite",
    tokenHash: NO_TOKEN_HASH,
    term: 0n,
    generation: 1n,
    ttlMs: 1,
    grantedAtMs: nowMs,
    renewedAtMs: nowMs,
    expiresAtMs: notAfterMs,
    endedAtMs: notAfterMs,
    state: "released",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    reservation: null,
    ticket: "",
    metadata: {},
    nonce,
    idempotency: null,
    note: noteFor(attempt),
  };
}

/**
 * Does the store keep what Solehold builds on? Asked with real leases on keys of their own, which nobody
 * else uses and which are cleaned up: `solehold-doctor/<random>`.
 */
import {
  type CommandOutcome,
  type LeaseExecutor,
  type LeaseKey,
  type LeaseListing,
  type LeaseStore,
  recordFence,
  StoreError,
} from "solehold";
import type { Check } from "./report.ts";

type Answer = Omit<Check, "id">;
type Applied = Extract<CommandOutcome, { kind: "applied" }>;

export const DOCTOR_PREFIX = "solehold-doctor/";
const TTL_MS = 30_000;
const CONTENDERS = 8;
const PAGE = 1_000;
/** A doctor must not take minutes over a large store. */
const MOST_RECORDS = 20_000;
const SHOWN_NAMES = 5;

export function granted(outcome: CommandOutcome): Applied {
  if (outcome.kind === "applied") return outcome;
  if (outcome.kind === "unsettled") throw outcome.cause;
  const { decision } = outcome;
  const why = decision.kind === "refused" ? `${decision.field} ${decision.message}` : decision.reason;
  throw new Error(`a lease on a fresh key was not granted: ${why}`);
}

/** Many at once on one fresh key: exactly one may win. */
export async function checkExclusion(executor: LeaseExecutor, key: LeaseKey): Promise<Answer> {
  const holders = Array.from({ length: CONTENDERS }, (_, index) => `doctor-${index}`);
  const outcomes = await Promise.all(
    holders.map(async (holder) => ({
      holder,
      outcome: await executor.execute({ op: "acquire", key, holder, ttlMs: TTL_MS }),
    })),
  );
  const won = outcomes.flatMap(({ holder, outcome }) =>
    outcome.kind === "applied" ? [{ holder, token: outcome.token }] : [],
  );
  for (const { holder, token } of won) await executor.execute({ op: "release", key, holder, token });
  return won.length === 1
    ? { status: "ok", detail: `${CONTENDERS} asked at once for one key, one got it` }
    : {
        status: "fail",
        detail: `${CONTENDERS} asked at once for one key, and ${won.length} got it: do not use this store`,
      };
}

/** A release must not let the numbers start again. */
export async function checkFences(executor: LeaseExecutor, key: LeaseKey): Promise<Answer> {
  const first = granted(await executor.execute({ op: "acquire", key, holder: "doctor-a", ttlMs: TTL_MS }));
  await executor.execute({ op: "release", key, holder: "doctor-a", token: first.token });
  const second = granted(await executor.execute({ op: "acquire", key, holder: "doctor-b", ttlMs: TTL_MS }));
  await executor.execute({ op: "release", key, holder: "doctor-b", token: second.token });
  const before = recordFence(first.decision.lease);
  const after = recordFence(second.decision.lease);
  return after > before
    ? { status: "ok", detail: `fence ${after} follows ${before} after a release` }
    : { status: "fail", detail: `fence ${after} came after ${before}: writes are lost or undone` };
}

/** Writes on an old version and on a false absence, straight to the store: both must be refused. */
export async function checkCompareAndSwap(
  store: LeaseStore,
  executor: LeaseExecutor,
  key: LeaseKey,
): Promise<Answer> {
  const grant = granted(await executor.execute({ op: "acquire", key, holder: "doctor-cas", ttlMs: TTL_MS }));
  const [old] = (await store.read([key])).records;
  const renewed = await executor.execute({
    op: "renew",
    key,
    holder: "doctor-cas",
    token: grant.token,
    ttlMs: TTL_MS,
  });
  if (old?.kind !== "found" || renewed.kind !== "applied") {
    return { status: "fail", detail: "a record that was just written could not be read and renewed" };
  }
  const next = { ...old.record, note: "written by a check that must fail" };
  const conflicts: string[] = [];
  for (const expected of [old.version, null]) {
    const [result] = (await store.apply([{ key, expected, next }])).results;
    conflicts.push(result?.kind ?? "missing");
  }
  await executor.execute({ op: "release", key, holder: "doctor-cas", token: grant.token });
  return conflicts.every((kind) => kind === "conflict")
    ? { status: "ok", detail: "a write on an old version and one on a false absence were refused" }
    : {
        status: "fail",
        detail: `conflicting writes ended as ${conflicts.join(", ")}: do not use this store`,
      };
}

export async function checkListing(executor: LeaseExecutor, key: LeaseKey): Promise<Answer> {
  try {
    const page = await executor.list({ tenant: key.tenant, prefix: key.name, limit: 10 });
    return page.leases.some((lease) => lease.key.name === key.name)
      ? { status: "ok", detail: "a key that was just used is listed" }
      : { status: "fail", detail: "a key that was just used is not listed" };
  } catch (error) {
    if (cannotList(error)) return { status: "warn", detail: error.message };
    throw error;
  }
}

/** Records that cannot be read bar their keys until somebody repairs them. */
export async function checkDamage(executor: LeaseExecutor, tenant: string): Promise<Answer> {
  const damaged: string[] = [];
  let seen = 0;
  let after: string | null = null;
  try {
    do {
      const cursor: { after?: string } = after === null ? {} : { after };
      const page: LeaseListing = await executor.list({ tenant, prefix: "", limit: PAGE, ...cursor });
      seen += page.leases.length + page.corrupt.length;
      damaged.push(...page.corrupt.map(({ key }) => key.name));
      after = page.next;
    } while (after !== null && seen < MOST_RECORDS);
  } catch (error) {
    if (cannotList(error))
      return { status: "skip", detail: "records cannot be listed, so none were looked at" };
    throw error;
  }
  const looked = `of ${after === null ? "all" : "the first"} ${seen} records of tenant ${tenant}`;
  const [first] = damaged;
  if (first === undefined) return { status: "ok", detail: `${looked} none is damaged` };
  const names = damaged.slice(0, SHOWN_NAMES).join(", ");
  return {
    status: "fail",
    detail: `${looked} ${damaged.length} cannot be read (${names}): nothing is granted there until 'solehold repair ${first}'`,
  };
}

function cannotList(error: unknown): error is StoreError {
  return error instanceof StoreError && error.kind === "config";
}

/** The keys are random and never used again, so no fence can come back. */
export async function cleanUp(store: LeaseStore, keys: readonly LeaseKey[]): Promise<Answer> {
  if (!store.capabilities.conditionalDelete) {
    return { status: "skip", detail: "this store cannot delete: the doctor's released keys stay" };
  }
  const { records } = await store.read(keys);
  const writes = keys.flatMap((key, index) => {
    const record = records[index];
    return record?.kind === "found" ? [{ key, expected: record.version, next: null }] : [];
  });
  const { results } = await store.apply(writes);
  return results.every(({ kind }) => kind === "applied")
    ? { status: "ok", detail: `${writes.length} keys of the doctor deleted` }
    : { status: "warn", detail: "the doctor's keys could not all be deleted" };
}

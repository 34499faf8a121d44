/**
 * Does the store keep the promises that Solehold builds on? Asked with real leases on keys of their own, which nobody
 * else uses and which are cleaned up: `solehold-doctor/<random>`.
 */

import { type LeaseKey, recordFence } from "../core/index.ts";
import type { AppliedOutcome, CommandOutcome, LeaseExecutor } from "../executor/index.ts";
import { type LeaseStore, pagesOf, StoreError } from "../store/index.ts";
import { type Finding, fail, ok, warn } from "./report.ts";

export const DOCTOR_PREFIX = "solehold-doctor/";
export const TTL_MS = 30_000;
const CONTENDERS = 8;
const PAGE = 1_000;
/** A doctor must not take minutes over a large store. */
const MAX_RECORDS = 20_000;
const SHOWN_NAMES = 5;

export function granted(outcome: CommandOutcome): AppliedOutcome {
  if (outcome.kind === "applied") return outcome;
  if (outcome.kind === "unsettled") throw outcome.cause;
  const { decision } = outcome;
  const why = decision.kind === "refused" ? `${decision.field} ${decision.message}` : decision.reason;
  throw new Error(`a lease on a fresh key was not granted: ${why}`);
}

/** Many at once on one fresh key: exactly one may win. */
export async function checkExclusion(executor: LeaseExecutor, key: LeaseKey): Promise<Finding> {
  const holders = Array.from({ length: CONTENDERS }, (_, index) => `doctor-${index}`);
  const outcomes = await Promise.all(
    holders.map((holder) => executor.execute({ op: "acquire", key, holder, ttlMs: TTL_MS })),
  );
  const won = outcomes.filter((outcome) => outcome.kind === "applied");
  for (const { token, decision } of won)
    await executor.execute({ op: "release", key, holder: decision.lease.holder, token });
  const asked = `${CONTENDERS} asked at once for one key`;
  if (won.length === 1) return ok(`${asked}, one got it`);
  return fail(`${asked}, and ${won.length} got it: do not use this store`);
}

/** A release must not let the numbers start again. */
export async function checkFences(executor: LeaseExecutor, key: LeaseKey): Promise<Finding> {
  const fenceOfNext = async (holder: string): Promise<bigint> => {
    const { token, decision } = granted(
      await executor.execute({ op: "acquire", key, holder, ttlMs: TTL_MS }),
    );
    await executor.execute({ op: "release", key, holder, token });
    return recordFence(decision.lease);
  };
  const before = await fenceOfNext("doctor-a");
  const after = await fenceOfNext("doctor-b");
  if (after > before) return ok(`fence ${after} follows ${before} after a release`);
  return fail(`fence ${after} came after ${before}: writes are lost or undone`);
}

/** Writes on an old version and on a false absence, straight to the store: both must be refused. */
export async function checkCompareAndSwap(
  store: LeaseStore,
  executor: LeaseExecutor,
  key: LeaseKey,
): Promise<Finding> {
  const holder = "doctor-cas";
  const { token } = granted(await executor.execute({ op: "acquire", key, holder, ttlMs: TTL_MS }));
  const [old] = (await store.read([key])).records;
  const renewed = await executor.execute({ op: "renew", key, holder, token, ttlMs: TTL_MS });
  if (old?.kind !== "found" || renewed.kind !== "applied")
    return fail("a record that was just written could not be read and renewed");
  const next = { ...old.record, note: "written by a check that must fail" };
  const results: string[] = [];
  for (const expected of [old.version, null]) {
    const [result] = (await store.apply([{ key, expected, next }])).results;
    results.push(result?.kind ?? "missing");
  }
  await executor.execute({ op: "release", key, holder, token });
  return results.every((kind) => kind === "conflict")
    ? ok("a write on an old version and one on a false absence were refused")
    : fail(`conflicting writes ended as ${results.join(", ")}: do not use this store`);
}

export async function checkListing(executor: LeaseExecutor, key: LeaseKey): Promise<Finding> {
  try {
    const page = await executor.list({ tenant: key.tenant, prefix: key.name, limit: 10 });
    const isListed = page.leases.some((lease) => lease.key.name === key.name);
    return isListed
      ? ok("a key that was just used is listed")
      : fail("a key that was just used is not listed");
  } catch (error) {
    if (cannotList(error)) return warn(error.message);
    throw error;
  }
}

/** Records that cannot be read bar their keys until an operator repairs them. */
export async function checkDamage(executor: LeaseExecutor, tenant: string): Promise<Finding> {
  const damaged: string[] = [];
  let seen = 0;
  let part = "all";
  try {
    for await (const page of pagesOf((query) => executor.list(query), { tenant, prefix: "", limit: PAGE })) {
      seen += page.leases.length + page.corrupt.length;
      damaged.push(...page.corrupt.map(({ key }) => key.name));
      part = page.next === null ? "all" : "the first";
      if (seen >= MAX_RECORDS) break;
    }
  } catch (error) {
    if (!cannotList(error)) throw error;
    return { status: "skip", detail: "records cannot be listed, so none were looked at" };
  }
  const checked = `of ${part} ${seen} records of tenant ${tenant}`;
  const [first] = damaged;
  if (first === undefined) return ok(`${checked} none is damaged`);
  const names = damaged.slice(0, SHOWN_NAMES).join(", ");
  const fix = `nothing is granted there until 'solehold repair ${first}'`;
  return fail(`${checked} ${damaged.length} cannot be read (${names}): ${fix}`);
}

function cannotList(error: unknown): error is StoreError {
  return error instanceof StoreError && error.kind === "config";
}

/** The keys are random and never used again, so no fence can come back. */
export async function cleanUp(store: LeaseStore, keys: readonly LeaseKey[]): Promise<Finding> {
  if (!store.capabilities.conditionalDelete)
    return { status: "skip", detail: "this store cannot delete: the doctor's released keys stay" };
  const { records } = await store.read(keys);
  const writes = keys.flatMap((key, index) => {
    const record = records[index];
    return record?.kind === "found" ? [{ key, expected: record.version, next: null }] : [];
  });
  const { results } = await store.apply(writes);
  return results.every(({ kind }) => kind === "applied")
    ? ok(`${writes.length} keys of the doctor deleted`)
    : warn("the doctor's keys could not all be deleted");
}

/**
 * May leases be trusted to what is behind this executor? Asked with real leases, on keys that nobody else uses. The command
 * line and the server ask the same way.
 */
import type { LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import { collectionObstacle, type LeaseExecutor, StoreExecutor } from "../executor/index.ts";
import type { LeaseStore } from "../store/index.ts";
import { checkClock } from "./clock.ts";
import {
  checkCompareAndSwap,
  checkDamage,
  checkExclusion,
  checkFences,
  checkListing,
  cleanUp,
  DOCTOR_PREFIX,
  granted,
} from "./lease-checks.ts";
import { type Finding, ok, type ReportBuilder, warn } from "./report.ts";
import { checkNotifications } from "./watch-check.ts";

const LEFT_TO_SERVER =
  "the doctor's leases are released; the server deletes their records a day from now, unless it runs with --collect-every 0";
const CLOCK_LEASE_MS = 60_000;

export async function examineLeases(
  builder: ReportBuilder,
  executor: LeaseExecutor,
  tenant: string,
  env: Env,
): Promise<void> {
  const used: LeaseKey[] = [];
  const newKey = (): LeaseKey => {
    const key = newDoctorKey(tenant, env);
    used.push(key);
    return key;
  };
  const store = storeOf(executor);
  if (store !== null) describeCapabilities(builder, store);
  const fenceKey = newKey();
  if ((await builder.run("fences", () => checkFences(executor, fenceKey))) === "fail") return;
  if (store !== null)
    await builder.run("compare-and-swap", () => checkCompareAndSwap(store, executor, newKey()));
  await builder.run("exclusion", () => checkExclusion(executor, newKey()));
  await builder.run("listing", () => checkListing(executor, fenceKey));
  await builder.run("notifications", () => checkNotifications(executor, newKey(), env));
  await builder.run("clock", () => examineClock(executor, newKey(), env));
  await builder.run("damage", () => checkDamage(executor, fenceKey.tenant));
  if (store === null) builder.add("clean-up", ok(LEFT_TO_SERVER));
  else await builder.run("clean-up", () => cleanUp(store, used));
}

/** Null behind a server. */
function storeOf(executor: LeaseExecutor): LeaseStore | null {
  return executor instanceof StoreExecutor ? executor.store : null;
}

async function examineClock(executor: LeaseExecutor, key: LeaseKey, env: Env): Promise<Finding> {
  const { drift } = executor;
  const store = storeOf(executor);
  if (store !== null) {
    const granularityMs = store.capabilities.clockGranularityMs;
    const askTime = async (): Promise<number | null> => (await store.read([key])).storeTimeMs;
    return await checkClock({ env, askTime, granularityMs, drift });
  }
  // A server says how long a lease lasts: the time that remains of it gives the time there.
  const holder = "doctor-clock";
  const { token } = granted(await executor.execute({ op: "acquire", key, holder, ttlMs: CLOCK_LEASE_MS }));
  const askTime = async (): Promise<number | null> => {
    const view = await executor.read(key);
    return view === null ? null : view.expiresAtMs - view.remainingMs;
  };
  const finding = await checkClock({ env, askTime, granularityMs: 1, drift });
  await executor.execute({ op: "release", key, holder, token });
  return finding;
}

function describeCapabilities(builder: ReportBuilder, store: LeaseStore): void {
  const { name, capabilities } = store;
  const { durable, clock, clockGranularityMs, clockSkewMs, maxBatch, maxConcurrentCalls } = capabilities;
  const skew = clockSkewMs === 0 ? "" : `, its machines up to ${clockSkewMs} ms apart`;
  const limits = `at most ${maxBatch} keys a call, ${maxConcurrentCalls} calls at once`;
  builder.add("store", ok(`${name}: clock ${clock} (${clockGranularityMs} ms${skew}), ${limits}`));
  builder.add("durability", durabilityFinding(durable));
  const collected =
    "a server deletes ended records by itself; without one run 'solehold collect' now and then";
  builder.add("collection", collectionFinding(collectionObstacle(store), collected));
}

/** A key that nobody else uses. */
export function newDoctorKey(tenant: string, env: Env): LeaseKey {
  return { tenant, name: `${DOCTOR_PREFIX}${Buffer.from(env.randomBytes(9)).toString("hex")}` };
}

export function durabilityFinding(durable: boolean): Finding {
  const risk = "acknowledged writes may be lost in a crash: use this store only where that is acceptable";
  return durable ? ok("acknowledged writes survive a crash") : warn(risk);
}

/** `obstacle`: why ended records are not deleted; null where they are. */
export function collectionFinding(obstacle: string | null, collected: string): Finding {
  return obstacle === null ? ok(collected) : warn(`ended records are kept for ever: ${obstacle}`);
}

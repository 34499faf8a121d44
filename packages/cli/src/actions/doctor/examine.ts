/** The examination: from "can it be reached" to "may it be trusted". It touches nothing that others use. */
import { stat } from "node:fs/promises";
import { type LeaseExecutor, type LeaseKey, type LeaseStore, StoreExecutor } from "solehold";
import { collectionObstacle, type Env } from "solehold/internal";
import { withoutSecrets } from "../../format/url.ts";
import { versions } from "../version.ts";
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
import { type DoctorReport, type Finding, ok, ReportBuilder, warn } from "./report.ts";
import { checkNotifications } from "./watch-check.ts";

const LEFT_TO_SERVER =
  "the doctor's leases are released; the server deletes their records a day from now, unless it runs with --collect-every 0";
const CLOCK_LEASE_MS = 60_000;
const GROUP_OR_OTHERS_MAY_WRITE = 0o022;

export async function examine(options: {
  readonly url: string;
  readonly tenant: string;
  readonly env: Env;
  readonly open: () => Promise<LeaseExecutor>;
}): Promise<DoctorReport> {
  const { url, tenant, env } = options;
  const builder = new ReportBuilder();
  const { solehold, node, platform } = versions();
  builder.add("version", ok(`solehold ${solehold}, node ${node}, ${platform}`));
  const used: LeaseKey[] = [];
  const newKey = (): LeaseKey => {
    const key = { tenant, name: `${DOCTOR_PREFIX}${Buffer.from(env.randomBytes(9)).toString("hex")}` };
    used.push(key);
    return key;
  };
  let executor: LeaseExecutor | undefined;
  const isReachable = await builder.run("reachable", async () => {
    const startedMs = env.monotonicMs();
    executor = await options.open();
    await executor.read(newKey());
    return ok(`${withoutSecrets(url)} answered in ${Math.round(env.monotonicMs() - startedMs)} ms`);
  });
  try {
    if (isReachable !== "fail" && executor !== undefined) {
      await examineLeases(builder, executor, env, newKey, used);
      await examineFolder(builder, url);
    }
  } finally {
    await executor?.close();
  }
  return builder.report();
}

async function examineLeases(
  builder: ReportBuilder,
  executor: LeaseExecutor,
  env: Env,
  newKey: () => LeaseKey,
  used: readonly LeaseKey[],
): Promise<void> {
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
  const risk = "acknowledged writes may be lost in a crash: use this store only where that is acceptable";
  builder.add("durability", durable ? ok("acknowledged writes survive a crash") : warn(risk));
  const obstacle = collectionObstacle(store);
  const collected =
    "a server deletes ended records by itself; without one run 'solehold collect' now and then";
  builder.add(
    "collection",
    obstacle === null ? ok(collected) : warn(`ended records are kept for ever: ${obstacle}`),
  );
}

/** A folder that others may write to is a store that others may forge leases in. */
async function examineFolder(builder: ReportBuilder, url: string): Promise<void> {
  const folder = /^(?:embedded|file):(?:\/\/(?=\/))?(.+)$/i.exec(url)?.[1];
  if (folder === undefined) return;
  await builder.run("permissions", async () => {
    const { mode } = await stat(folder);
    const found = `${folder} has mode ${(mode & 0o777).toString(8).padStart(3, "0")}`;
    const isSafe = (mode & GROUP_OR_OTHERS_MAY_WRITE) === 0;
    return isSafe ? ok(found) : warn(`${found}: others may write to it; chmod 700 it`);
  });
}

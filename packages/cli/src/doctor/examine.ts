/** The examination: from "can it be reached" to "may it be trusted". Nothing that others use is touched. */
import { stat } from "node:fs/promises";
import { type Env, type LeaseExecutor, type LeaseKey, type LeaseStore, StoreExecutor } from "solehold";
import { collectionObstacle } from "solehold/internal";
import { versions } from "../versions.ts";
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
import { type Check, type DoctorReport, Findings } from "./report.ts";
import { checkNews } from "./watch-check.ts";

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
  const findings = new Findings();
  const { solehold, node, platform } = versions();
  findings.add("version", "ok", `solehold ${solehold}, node ${node}, ${platform}`);
  let opened: LeaseExecutor | null = null;
  const key = (): LeaseKey => ({
    tenant,
    name: `${DOCTOR_PREFIX}${Buffer.from(env.randomBytes(9)).toString("hex")}`,
  });
  const reachable = await findings.ask("reachable", async () => {
    const startedMs = env.monotonicMs();
    opened = await options.open();
    await opened.read(key());
    return {
      status: "ok",
      detail: `${withoutSecrets(url)} answered in ${Math.round(env.monotonicMs() - startedMs)} ms`,
    };
  });
  const executor = opened as LeaseExecutor | null;
  if (executor === null) return findings.report();
  try {
    if (reachable !== "fail") await examineManager({ findings, executor, env, url, key });
  } finally {
    await executor.close();
  }
  return findings.report();
}

interface Examination {
  readonly findings: Findings;
  readonly executor: LeaseExecutor;
  readonly env: Env;
  readonly url: string;
  readonly key: () => LeaseKey;
}

async function examineManager(examination: Examination): Promise<void> {
  const { findings, executor, env, url } = examination;
  const used: LeaseKey[] = [];
  const key = (): LeaseKey => {
    const fresh = examination.key();
    used.push(fresh);
    return fresh;
  };
  const store = executor instanceof StoreExecutor ? executor.store : null;
  if (store !== null) describeCapabilities(findings, store);
  const fenceKey = key();
  const writable = await findings.ask("fences", () => checkFences(executor, fenceKey));
  if (writable === "fail") return;
  if (store !== null)
    await findings.ask("compare-and-swap", () => checkCompareAndSwap(store, executor, key()));
  await findings.ask("exclusion", () => checkExclusion(executor, key()));
  await findings.ask("listing", () => checkListing(executor, fenceKey));
  await findings.ask("news", () => checkNews(executor, key(), env));
  await findings.ask("clock", () => examineClock(executor, key(), env));
  await findings.ask("damage", () => checkDamage(executor, fenceKey.tenant));
  if (store === null) findings.add("clean-up", "ok", LEFT_TO_SERVER);
  else await findings.ask("clean-up", () => cleanUp(store, used));
  await examineFolder(findings, url);
}

async function examineClock(executor: LeaseExecutor, key: LeaseKey, env: Env): Promise<Omit<Check, "id">> {
  const { drift } = executor;
  if (executor instanceof StoreExecutor) {
    const { store } = executor;
    const granularityMs = store.capabilities.clockGranularityMs;
    const askTime = async (): Promise<number | null> => (await store.read([key])).storeTimeMs;
    return await checkClock({ env, askTime, granularityMs, drift });
  }
  // A server says how long a lease lasts: what is left of it tells the time there.
  const holder = "doctor-clock";
  const { token } = granted(await executor.execute({ op: "acquire", key, holder, ttlMs: CLOCK_LEASE_MS }));
  const askTime = async (): Promise<number | null> => {
    const view = await executor.read(key);
    return view === null ? null : view.expiresAtMs - view.remainingMs;
  };
  const answer = await checkClock({ env, askTime, granularityMs: 1, drift });
  await executor.execute({ op: "release", key, holder, token });
  return answer;
}

function describeCapabilities(findings: Findings, store: LeaseStore): void {
  const { name, capabilities } = store;
  const { durable, clock, clockGranularityMs, clockSkewMs, maxBatch, maxConcurrentCalls } = capabilities;
  const skew = clockSkewMs === 0 ? "" : `, its machines up to ${clockSkewMs} ms apart`;
  findings.add(
    "store",
    "ok",
    `${name}: clock ${clock} (${clockGranularityMs} ms${skew}), at most ${maxBatch} keys a call, ${maxConcurrentCalls} calls at once`,
  );
  findings.add(
    "durability",
    durable ? "ok" : "warn",
    durable
      ? "acknowledged writes survive a crash"
      : "acknowledged writes may be lost in a crash: use this store only where that is acceptable",
  );
  const obstacle = collectionObstacle(store);
  findings.add(
    "collection",
    obstacle === null ? "ok" : "warn",
    obstacle === null
      ? "a server deletes ended records by itself; without one run 'solehold collect' now and then"
      : `ended records are kept for ever: ${obstacle}`,
  );
}

/** A folder that others may write to is a store that others may forge leases in. */
async function examineFolder(findings: Findings, url: string): Promise<void> {
  const folder = /^(?:embedded|file):(?:\/\/(?=\/))?(.+)$/i.exec(url)?.[1];
  if (folder === undefined) return;
  await findings.ask("permissions", async () => {
    const { mode } = await stat(folder);
    const octal = (mode & 0o777).toString(8).padStart(3, "0");
    return (mode & GROUP_OR_OTHERS_MAY_WRITE) === 0
      ? { status: "ok", detail: `${folder} has mode ${octal}` }
      : { status: "warn", detail: `${folder} has mode ${octal}: others may write to it; chmod 700 it` };
  });
}

/** A URL may carry a password. */
export function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//***@").replace(/\?.*$/, "?***");
}

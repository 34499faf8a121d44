/** From a URL to Leases: the scheme chooses the store. Store clients load only when their scheme is used. */
import { hostname } from "node:os";
import { type DriftBound, type Duration, durationMs, type LeasePolicy } from "../core/index.ts";
import { type Env, RandomIds, realEnv } from "../env/index.ts";
import { type LeaseExecutor, StoreExecutor } from "../executor/index.ts";
import { type LeaseStore, StoreError, withDeadline } from "../store/index.ts";
import { given } from "../support/given.ts";
import { debugIfAsked } from "./debug.ts";
import { Leases } from "./leases.ts";
import { checkOptions } from "./options.ts";
import { openByScheme } from "./schemes.ts";

export interface ConnectOptions {
  readonly tenant?: string;
  /** Shown to others as the holder. Default: host name, process id and a random part. */
  readonly holder?: string;
  readonly policy?: Partial<LeasePolicy>;
  readonly drift?: DriftBound;
  readonly env?: Env;
  /** Where an object store or a file store keeps its leases. Default: what the URL says, or `leases/`. */
  readonly prefix?: string;
  /** For a Solehold server that asks for one. Default: the environment variable SOLEHOLD_API_KEY. */
  readonly apiKey?: string;
  /**
   * How long opening the store, and each call to it, may take; after this the outcome is unknown. A command is given up
   * after twice as long. Default 5 s.
   */
  readonly timeout?: Duration;
  /**
   * "worker": a thread with a connection of its own renews the leases, also while the main thread is busy. Not for memory:,
   * and not together with `env` or `probe`. Default "main".
   */
  readonly renewIn?: "main" | "worker";
  /**
   * With `renewIn: "worker"`: a main thread that was busy for longer counts as hung, and its leases are renewed no more.
   * Default 10 s.
   */
  readonly mainThreadBound?: Duration;
}

const DEFAULT_MAIN_THREAD_BOUND: Duration = "10s";
const CONNECT_OPTIONS: ReadonlySet<string> = new Set([
  ...(["tenant", "holder", "policy", "drift"] satisfies readonly (keyof ConnectOptions)[]),
  ...(["env", "prefix", "apiKey", "timeout"] satisfies readonly (keyof ConnectOptions)[]),
  ...(["renewIn", "mainThreadBound"] satisfies readonly (keyof ConnectOptions)[]),
]);

/** Opens the store of a URL such as `memory:` or `embedded:./data`. */
export async function openStore(url: string, options: ConnectOptions = {}): Promise<LeaseStore> {
  checkOptions("connect", options, CONNECT_OPTIONS);
  const { env, prefix } = options;
  const opening = openByScheme(url, given({ env, prefix }));
  const limits = timeoutsOf(options);
  if (limits === null) return await opening;
  const late = (): StoreError =>
    new StoreError("timeout", `the store was not open within ${limits.callTimeoutMs} ms: raise 'timeout'`, {
      outcome: "not-applied",
    });
  const close = (store: LeaseStore): void => void store.close().catch(() => undefined);
  return await withDeadline(env ?? realEnv, limits.callTimeoutMs, opening, late, close);
}

/** Null for the defaults. */
export function timeoutsOf({
  timeout,
}: ConnectOptions): { callTimeoutMs: number; commandTimeoutMs: number } | null {
  if (timeout === undefined) return null;
  const callTimeoutMs = durationMs("timeout", timeout, 1);
  return { callTimeoutMs, commandTimeoutMs: 2 * callTimeoutMs };
}

/** The executor behind a URL: over a store, or over a Solehold server for http: and https:. */
export async function openExecutor(url: string, options: ConnectOptions = {}): Promise<LeaseExecutor> {
  checkOptions("connect", options, CONNECT_OPTIONS);
  const { env, policy, drift } = options;
  if (/^https?:/i.test(url)) {
    const { openRemoteExecutor } = await import("./open-remote.ts");
    return await openRemoteExecutor(url, options);
  }
  return new StoreExecutor({
    store: await openStore(url, options),
    ...timeoutsOf(options),
    ...given({ env, policy, drift }),
  });
}

export async function connect(url: string, options: ConnectOptions = {}): Promise<Leases> {
  const { env = realEnv, tenant } = options;
  const boundMs = workerBoundMs(url, options);
  const holder = options.holder ?? defaultHolder(env);
  debugIfAsked();
  const executor = await openExecutor(url, options);
  const rest = { executor, env, holder, ...given({ tenant }) };
  if (boundMs === null) return new Leases(rest);
  try {
    const { RenewalWorker } = await import("./renewal-worker.ts");
    return new Leases({ ...rest, worker: await RenewalWorker.open(env, { url, options, boundMs }) });
  } catch (error) {
    await executor.close();
    throw error;
  }
}

/** Null when leases are renewed in this thread. */
function workerBoundMs(
  url: string,
  { renewIn = "main", mainThreadBound, env }: ConnectOptions,
): number | null {
  if (renewIn !== "main" && renewIn !== "worker")
    throw new RangeError(`renewIn must be "main" or "worker", got ${JSON.stringify(renewIn)}`);
  if (renewIn === "main" && mainThreadBound !== undefined)
    throw new RangeError('mainThreadBound is for renewIn: "worker": leave it out, or name both');
  if (renewIn === "main") return null;
  if (/^memory:/i.test(url))
    throw new RangeError(
      'renewIn: "worker" needs a store that a thread can open, and memory: is in this one: use another store',
    );
  if (env !== undefined) throw new RangeError('renewIn: "worker" reads the real clocks: leave out env');
  return durationMs("mainThreadBound", mainThreadBound ?? DEFAULT_MAIN_THREAD_BOUND, 100);
}

/** Unique per process and readable: host names are cut so that the name stays within its limit. */
export function defaultHolder(env: Env): string {
  return `${hostname().slice(0, 60)}:${process.pid}:${new RandomIds(env).next().slice(0, 8)}`;
}

/**
 * `solehold/adapters/redlock`: the class of redlock 5 over leases, so that a program can move by changing its import. A
 * lock here has a fence, and `using` aborts its signal before the lock can be another's.
 *
 * Not promised: a quorum. One Redis (the first client), or the store of the `Leases` given, decides; a warning says so.
 * Locks of redlock itself and locks taken here do not see each other.
 */
import { EventEmitter } from "node:events";
import { LeaseError, LeaseHeldError, LeaseSet, Leases } from "../client/index.ts";
import { writeTransfer } from "../core/index.ts";
import { StoreExecutor } from "../executor/index.ts";
import { StoreError } from "../store/index.ts";
import { openRedisStore, type RedisClient } from "../stores/redis/index.ts";
import { ExecutionError, type ExecutionResult, ResourceLockedError, statsOf } from "./redlock-errors.ts";
import { Lock, type RedlockAbortSignal } from "./redlock-lock.ts";

export {
  ExecutionError,
  type ExecutionResult,
  type ExecutionStats,
  ResourceLockedError,
} from "./redlock-errors.ts";
export { Lock, type RedlockAbortSignal } from "./redlock-lock.ts";

export interface Settings {
  readonly driftFactor: number;
  /** An acquire waits up to `retryCount * retryDelay` ms and is woken by the release. -1: without end. */
  readonly retryCount: number;
  readonly retryDelay: number;
  readonly retryJitter: number;
  readonly automaticExtensionThreshold: number;
}

/** Leases, or a client of ioredis or node-redis. Its settings are used; the store opens its own connection. */
export type Client = Leases | (RedisClient & { quit?(): Promise<unknown> });
type Routine<Result> = (signal: RedlockAbortSignal, lock: Lock) => Promise<Result>;

const DEFAULTS: Settings = Object.freeze({
  ...{ driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 100 },
  automaticExtensionThreshold: 500,
});
const UNUSED = ["driftFactor", "retryJitter", "automaticExtensionThreshold"] as const;
const warned = new Set<string>();

export class Redlock extends EventEmitter {
  readonly clients: Set<Client>;
  readonly settings: Settings;
  #opening: Promise<Leases> | null = null;

  constructor(clients: Iterable<Client>, settings: Partial<Settings> = {}, scripts?: object) {
    super();
    // As in redlock: an error event that nobody listens to must not end the process.
    this.on("error", () => undefined);
    this.clients = new Set(clients);
    if (this.clients.size === 0)
      throw new Error("Redlock must be instantiated with at least one client: new Redlock([client])");
    this.settings = { ...DEFAULTS, ...settings };
    if (this.clients.size > 1)
      warnOnce(
        `redlock adapter: ${this.clients.size} clients were given. The first is the store of all leases, the others ` +
          "are not used: name the same one first in every process.",
      );
    const unused = [...UNUSED.filter((name) => name in settings), ...(scripts ? ["scripts"] : [])];
    if (unused.length > 0) warnOnce(`redlock adapter: ${unused.join(", ")} not used: see docs/migrating.md.`);
  }

  /** Closes the leases, and the clients, as redlock does. */
  async quit(): Promise<void> {
    await (await this.#opening?.catch(() => null))?.close();
    await Promise.all([...this.clients].map((client) => (client instanceof Leases ? null : client.quit?.())));
  }

  /** Not renewed by itself, as in redlock: it ends after `duration` ms unless it is extended. */
  async acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    return await this.#acquire(resources, duration, settings, { autoRenew: false });
  }

  /** Runs the routine under a lock that is renewed until the routine has settled. */
  async using<Result>(resources: string[], duration: number, routine: Routine<Result>): Promise<Result>;
  async using<Result>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine: Routine<Result>,
  ): Promise<Result>;
  async using<Result>(
    resources: string[],
    duration: number,
    ...given: readonly [Routine<Result>] | readonly [Partial<Settings>, Routine<Result>]
  ): Promise<Result> {
    const [settings, routine] = given.length === 1 ? [{}, given[0]] : given;
    if (typeof routine !== "function") throw new TypeError("using(resources, duration, routine): no routine");
    const lock = await this.#acquire(resources, duration, settings, { keepAlive: true });
    let result: Result;
    try {
      result = await routine(lock.signal, lock);
    } catch (error) {
      await lock.release().catch(() => undefined);
      throw error;
    }
    await lock.release();
    return result;
  }

  /** Throws ExecutionError when the lock had ended before, or when the store does not answer. Never waits to retry. */
  async release(lock: Lock): Promise<ExecutionResult> {
    const results = await Promise.all(lock.leases.map((lease) => lease.release()));
    const failed = results.find(({ released }) => !released);
    if (failed === undefined) return { attempts: [this.#vote(null)] };
    throw this.#failure(new ResourceLockedError(`the lock could not be released: ${failed.reason}`));
  }

  /** A new lock with the same fence that lasts `duration` ms from now; the old one is over. */
  async extend(existing: Lock, duration: number): Promise<Lock> {
    assertDuration(duration);
    if (existing.expiration === 0) throw new ExecutionError("Cannot extend an already-expired lock.", []);
    const leases = await this.#leases();
    const extending = existing.leases.map(({ key, holder, fence, token }) =>
      leases.adopt(writeTransfer({ key, holder, fence, token, ttlMs: duration }), { autoRenew: false }),
    );
    const settled = await Promise.allSettled(extending);
    const extended = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const failed = settled.find((each) => each.status === "rejected");
    // Of the two handles of a grant one goes on: a failed extension leaves the old lock as it was.
    for (const lease of failed === undefined ? existing.leases : extended) lease.abandon();
    if (failed !== undefined) throw this.#failure(failed.reason);
    return new Lock(this, existing.resources, new LeaseSet(extended), [this.#vote(null)]);
  }

  async #acquire(
    resources: string[],
    duration: number,
    settings: Partial<Settings> = {},
    options: { readonly autoRenew?: boolean; readonly keepAlive?: boolean },
  ): Promise<Lock> {
    assertDuration(duration);
    const { retryCount, retryDelay } = { ...this.settings, ...settings };
    const wait = retryCount === -1 ? "forever" : retryCount * retryDelay;
    const onWaiting = ({ holder }: { readonly holder: string | null }): void =>
      void this.emit("error", new ResourceLockedError(`${resources.join(", ")}: held by ${holder}`));
    const names = [...new Set(resources)];
    try {
      const set = await (await this.#leases()).acquireAll(names, {
        ttl: duration,
        wait,
        onWaiting,
        ...options,
      });
      return new Lock(this, names, set, [this.#vote(null)]);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** An ExecutionError for what a lock can meet; a mistake in the call stays what it is. */
  #failure(error: unknown): unknown {
    const isHeld = error instanceof LeaseHeldError;
    const isOurs = error instanceof LeaseError || error instanceof StoreError;
    if (!isOurs && !(error instanceof ResourceLockedError)) return error;
    const vote = isHeld ? new ResourceLockedError(error.message, error) : error;
    this.emit("error", vote);
    return new ExecutionError(error.message, [this.#vote(vote)], error);
  }

  #vote(against: Error | null): ExecutionResult["attempts"][number] {
    const [client] = this.clients;
    return Promise.resolve(statsOf(client, against));
  }

  #leases(): Promise<Leases> {
    const [first] = this.clients;
    this.#opening ??= (first instanceof Leases ? Promise.resolve(first) : opened(first)).catch((error) => {
      // The next call tries again.
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }
}

export default Redlock;

async function opened(client: RedisClient | undefined): Promise<Leases> {
  const store = await openRedisStore({ client: client as RedisClient });
  return new Leases({ executor: new StoreExecutor({ store }) });
}

function assertDuration(duration: number): void {
  if (!Number.isInteger(duration) || duration <= 0)
    throw new Error(`Duration must be an integer value in milliseconds, got ${duration}.`);
}

function warnOnce(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { type: "SoleholdWarning", code: "SOLEHOLD_REDLOCK" });
}

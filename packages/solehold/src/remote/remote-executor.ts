/**
 * The executor behind `connect("https://...")`: the same commands, decided by a Solehold server.
 *
 * Commands can be repeated safely: an acquire brings its own token, the others an idempotency key,
 * so an answer that got lost is asked for again within the command's time. A server restart or a network
 * cut shorter than that goes unnoticed. The exception is an operator's command that does not say which grant it means:
 * once it may have been done it is not sent again, because it could strike the next holder. That is so, too, when a server
 * failed to serve it: a proxy may have sent a copy to another one.
 */
import {
  type ClockReading,
  checkedDrift,
  createPolicy,
  DEFAULT_DRIFT,
  type DriftBound,
  type LeaseKey,
  type LeasePolicy,
} from "../core/index.ts";
import { delay, type Env, jittered, randomId, readClocks } from "../env/index.ts";
import {
  type CallContext,
  type CommandOutcome,
  CorruptRecordError,
  type Feature,
  type LeaseExecutor,
  type LeaseListing,
  type LeaseRequest,
  type LeaseView,
  type QueueListener,
  type UnsettledOutcome,
  type WaitingDetails,
  type WaitOptions,
} from "../executor/index.ts";
import {
  asStoreError,
  type ListQuery,
  StoreError,
  type StoreErrorKind,
  type StoreEvent,
  type StoreWatch,
  type WatchScope,
} from "../store/index.ts";
import { decodeLease, decodeOutcome, encodeRequest, fieldsOf, unsettled } from "../wire/index.ts";
import { routeOf } from "./replica-router.ts";
import type { RemoteAnswer, RemoteTransport } from "./transport.ts";
import { watchServer } from "./watch.ts";

export interface RemoteExecutorOptions {
  readonly transport: RemoteTransport;
  readonly env: Env;
  readonly drift?: DriftBound;
  readonly policy?: Partial<LeasePolicy>;
  readonly commandTimeoutMs?: number;
}

/** A server that is restarting is back within moments; asking it more often than this does not help. */
const FIRST_RETRY_MS = 30;
const SLOWEST_RETRY_MS = 500;
/** A request that waits for its turn is answered a little later than its wait. */
const WAIT_SLACK_MS = 5_000;
const LONGEST_WAIT_MS = 30_000;
/** A tenant may have millions of records to go through. */
const MAINTENANCE_TIMEOUT_MS = 600_000;
/** A request without an answer for this long waits for its turn. */
const SHOW_WAIT_AFTER_MS = 200;
/** Nobody at the address for this long is more likely a wrong address than a restart. */
const NOBODY_THERE_MS = 2_000;

/** What a server does; whether it has an approval policy is its own answer. */
const FEATURES: ReadonlySet<Feature> = new Set(["approvals", "audit", "queue"]);

export class RemoteExecutor implements LeaseExecutor {
  readonly features = FEATURES;
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly #transport: RemoteTransport;
  readonly #env: Env;
  readonly #commandTimeoutMs: number;

  constructor(options: RemoteExecutorOptions) {
    this.#transport = options.transport;
    this.#env = options.env;
    this.drift = checkedDrift(options.drift ?? DEFAULT_DRIFT);
    this.policy = createPolicy(options.policy);
    this.#commandTimeoutMs = options.commandTimeoutMs ?? 10_000;
  }

  execute(request: LeaseRequest, { wait }: CallContext = {}): Promise<CommandOutcome> {
    switch (request.op) {
      case "acquire":
        return this.#command(request, request.token ?? randomId(this.#env), wait);
      case "handoff":
        return this.#command(this.#repeatable(request), request.token);
      case "revoke":
      case "break":
        return this.#command(this.#repeatable(request), "");
      default:
        return this.#command(request, request.token);
    }
  }

  async read(key: LeaseKey): Promise<LeaseView | null> {
    const answer = await this.#get(`/v1/lease?${query({ tenant: key.tenant, name: key.name })}`);
    if (answer.status === 404) return null;
    const { reason, recordVersion, recordDetail } = fieldsOf(answer.body ?? {});
    if (reason === "RECORD_CORRUPT")
      throw new CorruptRecordError(key, String(recordVersion), String(recordDetail));
    return decodeLease(this.#bodyOf(answer));
  }

  async list({ tenant, prefix, holder, state, after, limit }: ListQuery): Promise<LeaseListing> {
    const parameters = { tenant, prefix, holder, state, cursor: after, limit: String(limit) };
    const body = fieldsOf(this.#bodyOf(await this.#get(`/v1/leases?${query(parameters)}`)));
    const { leases, corrupt, next } = body;
    return {
      leases: (leases as readonly unknown[]).map(decodeLease),
      corrupt: (corrupt as readonly { name: string; detail: string }[]).map(({ name, detail }) => ({
        key: { tenant, name },
        detail,
      })),
      next: typeof next === "string" ? next : null,
    };
  }

  watch(
    scope: WatchScope,
    listener: (event: StoreEvent) => void,
    onQueue?: QueueListener,
  ): Promise<StoreWatch | null> {
    return watchServer(this.#transport, this.#env, scope, listener, onQueue);
  }

  /** One pass of collection over a tenant's ended records. */
  async collect(tenant: string): Promise<{ readonly scanned: number; readonly deleted: number }> {
    const { scanned, deleted } = await this.#maintain("/v1/maintenance/collect", { tenant });
    return { scanned: Number(scanned), deleted: Number(deleted) };
  }

  /** False when the record is not damaged (any more). Without a generation the server takes one by the store's time. */
  async repair({ tenant, name }: LeaseKey, generation?: bigint): Promise<boolean> {
    const body = { tenant, name, generation: generation?.toString() };
    return (await this.#maintain("/v1/maintenance/repair", body)).repaired === true;
  }

  async close(): Promise<void> {
    this.#transport.close();
  }

  async #maintain(path: string, body: object): Promise<{ readonly [field: string]: unknown }> {
    const timeoutMs = MAINTENANCE_TIMEOUT_MS;
    return fieldsOf(this.#bodyOf(await this.#transport.send({ method: "POST", path, body, timeoutMs })));
  }

  /** Commands that are not repeatable by their nature get a key of their own. */
  #repeatable<Request extends { readonly idempotencyKey?: string }>(request: Request): Request {
    return request.idempotencyKey === undefined
      ? { ...request, idempotencyKey: randomId(this.#env) }
      : request;
  }

  async #command(request: LeaseRequest, token: string, wait?: WaitOptions): Promise<CommandOutcome> {
    const command: RemoteCommand = {
      ...{ request, token, body: bodyOf(request, token, wait), signal: wait?.signal },
      waitMs: wait === undefined ? 0 : Math.min(wait.waitMs, LONGEST_WAIT_MS) + WAIT_SLACK_MS,
      deadlineMs: this.#env.monotonicMs() + (request.timeoutMs ?? this.#commandTimeoutMs),
    };
    if (wait?.onWaiting === undefined) return await this.#settled(command);
    const answered = new AbortController();
    // What is shown is for people: a failure to learn it changes nothing.
    this.#showWait(request, wait.onWaiting, answered.signal).catch(() => undefined);
    try {
      return await this.#settled(command);
    } finally {
      answered.abort();
    }
  }

  /** A request that is not answered at once waits in the server's queue: the server is asked for its place there. */
  async #showWait(
    request: LeaseRequest,
    onWaiting: NonNullable<WaitOptions["onWaiting"]>,
    answered: AbortSignal,
  ): Promise<void> {
    await delay(this.#env, SHOW_WAIT_AFTER_MS, answered);
    const { tenant, name } = request.key;
    const body = fieldsOf(this.#bodyOf(await this.#get(`/v1/queue?${query({ tenant, name })}`)));
    if (!answered.aborted) onWaiting(waitingDetails(body, request));
  }

  /** Asks again after an answer that was lost, within the command's time. */
  async #settled(command: RemoteCommand): Promise<CommandOutcome> {
    const { request, signal, deadlineMs } = command;
    const startedMs = this.#env.monotonicMs();
    let maybeDone: UnsettledOutcome | null = null;
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.#attempt(command);
      if (outcome.kind !== "unsettled") return outcome;
      if (outcome.outcome === "unknown") maybeDone = outcome;
      if (maybeDone !== null && !meansOneGrant(request)) return maybeDone;
      // An attempt that may have been carried out is worth asking about until the end.
      const untilMs = maybeDone === null ? Math.min(deadlineMs, startedMs + NOBODY_THERE_MS) : deadlineMs;
      const pauseMs = jittered(this.#env, Math.min(SLOWEST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt), 0.5);
      const hopeless = outcome.cause.kind === "auth" || outcome.cause.kind === "config" || signal?.aborted;
      if (hopeless || this.#env.monotonicMs() + pauseMs >= untilMs) return maybeDone ?? outcome;
      await delay(this.#env, pauseMs, signal);
    }
  }

  /** Never rejects. The clocks are read before anything is sent, since the belief of a grant counts from there. */
  async #attempt({
    request,
    token,
    body,
    waitMs,
    signal,
    deadlineMs,
  }: RemoteCommand): Promise<CommandOutcome> {
    const { driftRatio } = this.drift;
    const reading = readClocks(this.#env);
    const received = (): ClockReading => readClocks(this.#env);
    const path = `/v1/leases/${request.op}`;
    const timeoutMs = Math.max(1, deadlineMs - reading.monotonicMs) + waitMs;
    const sent = { method: "POST", path, routeBy: routeOf(request.key), body, timeoutMs } as const;
    try {
      const answer = await this.#transport.send(signal === undefined ? sent : { ...sent, signal });
      const outcome = decodeOutcome(answer, token, { reading, received, driftRatio });
      return meansOneGrant(request) ? outcome : overAllCopies(outcome, answer.status);
    } catch (error) {
      return unsettled(asStoreError(error, "the request failed", "unknown"));
    }
  }

  async #get(path: string): Promise<RemoteAnswer> {
    return await this.#transport.send({ method: "GET", path, timeoutMs: this.#commandTimeoutMs });
  }

  #bodyOf({ status, body }: RemoteAnswer): unknown {
    if (status === 200) return body;
    const { detail, storeError, outcome } = fieldsOf(body ?? {});
    const kind = KIND_OF_STATUS[status] ?? (storeError === "data-loss" ? "data-loss" : "unreachable");
    throw new StoreError(kind, typeof detail === "string" ? detail : `the server answered ${status}`, {
      outcome: outcome === "unknown" ? "unknown" : "not-applied",
    });
  }
}

/** Of the server's view of its queue, what concerns this request. */
function waitingDetails(body: { readonly [field: string]: unknown }, request: LeaseRequest): WaitingDetails {
  const { heldBy, heldUntilMs, waiters } = body;
  const holder = "holder" in request ? request.holder : "";
  const queued = waiters as readonly { readonly position: number; readonly holder: string }[];
  return {
    holder: typeof heldBy === "string" ? heldBy : null,
    sinceMs: null,
    position: queued.find((waiter) => waiter.holder === holder)?.position ?? 0,
    heldUntilMs: typeof heldUntilMs === "number" ? heldUntilMs : null,
  };
}

const KIND_OF_STATUS: { readonly [status: number]: StoreErrorKind } = {
  400: "config",
  401: "auth",
  403: "auth",
  501: "config",
};

/** What stays the same over the attempts of a command. */
interface RemoteCommand {
  readonly request: LeaseRequest;
  readonly token: string;
  readonly body: object;
  /** How much longer an answer may take because the request waits for its turn. */
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number;
}

/** The idempotency key of an operator's command goes with the grant that it ended; approvals know the grant they are for. */
function meansOneGrant(request: LeaseRequest): boolean {
  if (request.op !== "revoke" && request.op !== "break") return true;
  return request.generation !== undefined || request.approval !== undefined;
}

/**
 * A proxy may send copies of a request. A server that failed speaks of the copy that it got: another one may have been
 * carried out, and nothing in the record will tell once the next holder has the lease.
 */
function overAllCopies(outcome: CommandOutcome, status: number): CommandOutcome {
  if (outcome.kind !== "unsettled" || outcome.outcome === "unknown" || status < 500) return outcome;
  const { kind, message } = outcome.cause;
  return unsettled(new StoreError(kind, message, { outcome: "unknown", cause: outcome.cause }));
}

function bodyOf(request: LeaseRequest, token: string, wait: WaitOptions | undefined): object {
  const body = encodeRequest(request, token);
  if (wait !== undefined) body.waitMs = Math.floor(Math.min(wait.waitMs, LONGEST_WAIT_MS));
  return body;
}

function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
}

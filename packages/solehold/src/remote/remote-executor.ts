/**
 * The manager behind `connect("https://...")`: the same commands, decided by a Solehold server.
 *
 * Every command can be repeated safely: an acquire brings its own token, the others an idempotency key,
 * so an answer that got lost is asked for again within the command's time. A server restart or a network
 * cut shorter than that goes unnoticed.
 */
import {
  type ClockReading,
  createPolicy,
  DEFAULT_DRIFT,
  type DriftBound,
  keyId,
  type LeaseKey,
  type LeaseOp,
  type LeasePolicy,
} from "../core/index.ts";
import { delay, type Env, jittered, randomId, readClocks } from "../env/index.ts";
import {
  type AcquireRequest,
  type BreakRequest,
  type CommandOutcome,
  CorruptRecordError,
  type HandoffRequest,
  type LeaseListing,
  type LeaseManager,
  type LeaseRequest,
  type LeaseView,
  type ReleaseRequest,
  type RenewRequest,
  type RequestOf,
  type ResumeRequest,
  type RevokeRequest,
  type UnsettledOutcome,
  type UseRequest,
  type WaitInLine,
  type Writable,
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
import type { Question } from "./brief.ts";
import type { RemoteAnswer, RemoteRequest, RemoteTransport } from "./transport.ts";
import { followServer } from "./watch.ts";
import { fieldsOf, outcomeOf, unsettled, viewFrom } from "./wire.ts";

export interface RemoteManagerOptions {
  readonly transport: RemoteTransport;
  readonly env: Env;
  readonly drift?: DriftBound;
  readonly policy?: Partial<LeasePolicy>;
  readonly commandTimeoutMs?: number;
}

/** A server that is restarting is back within moments; asking it more often than this does not help. */
const FIRST_RETRY_MS = 30;
const SLOWEST_RETRY_MS = 500;
/** A request that waits in line is answered a little later than its wait. */
const LINE_SLACK_MS = 5_000;
const LONGEST_LINE_MS = 30_000;
/** A tenant may have millions of records to go through. */
const MAINTENANCE_TIMEOUT_MS = 600_000;
/** Nobody at the address for this long is more likely a wrong address than a restart. */
const NOBODY_THERE_MS = 2_000;

export class RemoteLeaseManager implements LeaseManager {
  readonly line = "server";
  readonly policy: LeasePolicy;
  readonly drift: DriftBound;
  readonly #transport: RemoteTransport;
  readonly #env: Env;
  readonly #commandTimeoutMs: number;

  constructor(options: RemoteManagerOptions) {
    this.#transport = options.transport;
    this.#env = options.env;
    this.drift = options.drift ?? DEFAULT_DRIFT;
    this.policy = createPolicy(options.policy);
    this.#commandTimeoutMs = options.commandTimeoutMs ?? 10_000;
  }

  acquire(request: RequestOf<AcquireRequest>, wait?: WaitInLine): Promise<CommandOutcome> {
    return this.#command("acquire", request, request.token ?? randomId(this.#env), wait);
  }

  renew(request: RequestOf<RenewRequest>): Promise<CommandOutcome> {
    return this.#command("renew", request, request.token);
  }

  release(request: RequestOf<ReleaseRequest>): Promise<CommandOutcome> {
    return this.#command("release", request, request.token);
  }

  use(request: RequestOf<UseRequest>): Promise<CommandOutcome> {
    return this.#command("use", request, request.token);
  }

  resume(request: RequestOf<ResumeRequest>): Promise<CommandOutcome> {
    return this.#command("resume", request, request.token);
  }

  handOff(request: RequestOf<HandoffRequest>): Promise<CommandOutcome> {
    return this.#command("handoff", this.#repeatable(request), request.token);
  }

  revoke(request: RequestOf<RevokeRequest>): Promise<CommandOutcome> {
    return this.#command("revoke", this.#repeatable(request), "");
  }

  break(request: RequestOf<BreakRequest>): Promise<CommandOutcome> {
    return this.#command("break", this.#repeatable(request), "");
  }

  async get(key: LeaseKey): Promise<LeaseView | null> {
    const answer = await this.#read(`/v1/lease?${query({ tenant: key.tenant, name: key.name })}`);
    if (answer.status === 404) return null;
    const { reason, recordVersion, recordDetail } = fieldsOf(answer.body ?? {});
    if (reason === "RECORD_CORRUPT")
      throw new CorruptRecordError(key, String(recordVersion), String(recordDetail));
    return viewFrom(this.#bodyOf(answer));
  }

  async isValid(key: LeaseKey, holder: string): Promise<boolean> {
    const lease = await this.get(key);
    return lease?.live === true && lease.holder === holder;
  }

  async list({ tenant, prefix, holder, state, after, limit }: ListQuery): Promise<LeaseListing> {
    const parameters = { tenant, prefix, holder, state, cursor: after, limit: String(limit) };
    const body = fieldsOf(this.#bodyOf(await this.#read(`/v1/leases?${query(parameters)}`)));
    const { leases, corrupt, next } = body;
    return {
      leases: (leases as readonly unknown[]).map(viewFrom),
      corrupt: (corrupt as readonly { name: string; detail: string }[]).map(({ name, detail }) => ({
        key: { tenant, name },
        detail,
      })),
      next: typeof next === "string" ? next : null,
    };
  }

  watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch | null> {
    return followServer(this.#transport, this.#env, scope, listener);
  }

  /** One pass of collection over a tenant's ended records. */
  async collect(tenant: string): Promise<{ readonly scanned: number; readonly deleted: number }> {
    const { scanned, deleted } = await this.#maintain("/v1/maintenance/collect", { tenant });
    return { scanned: Number(scanned), deleted: Number(deleted) };
  }

  /** False when the record is not damaged (any more). Without a generation the server takes one by the store's time. */
  async repair({ tenant, name }: LeaseKey, generation?: bigint): Promise<boolean> {
    const body = { tenant, name, generation: decimal(generation) };
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

  /** Most commands are answered at once: that way needs no loop, and few promises. */
  #command(op: LeaseOp, request: Asked, token: string, wait?: WaitInLine): Promise<CommandOutcome> {
    const reading = readClocks(this.#env);
    const sending: Sending = {
      op,
      request,
      token,
      body: bodyOf(op, request, token, wait),
      routeBy: keyId(request.key),
      inLineMs: wait === undefined ? 0 : Math.min(wait.waitMs, LONGEST_LINE_MS) + LINE_SLACK_MS,
      signal: wait?.signal,
      deadlineMs: reading.monotonicMs + (request.timeoutMs ?? this.#commandTimeoutMs),
    };
    const settled = (outcome: CommandOutcome): CommandOutcome | Promise<CommandOutcome> =>
      outcome.kind === "unsettled" ? this.#again(sending, outcome, reading.monotonicMs) : outcome;
    return this.#attempt(sending, reading, settled);
  }

  /** Repeats a command whose first attempt ended with `first`. */
  async #again(sending: Sending, first: UnsettledOutcome, startedMs: number): Promise<CommandOutcome> {
    const { signal, deadlineMs } = sending;
    let maybeDone: UnsettledOutcome | null = null;
    let outcome: CommandOutcome = first;
    for (let attempt = 0; ; attempt += 1) {
      if (outcome.outcome === "unknown") maybeDone = outcome;
      // An attempt that may have been carried out is worth asking about until the end.
      const untilMs = maybeDone === null ? Math.min(deadlineMs, startedMs + NOBODY_THERE_MS) : deadlineMs;
      const pauseMs = jittered(this.#env, Math.min(SLOWEST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt), 0.5);
      const hopeless = outcome.cause.kind === "auth" || outcome.cause.kind === "config" || signal?.aborted;
      if (hopeless || this.#env.monotonicMs() + pauseMs >= untilMs) return maybeDone ?? outcome;
      await delay(this.#env, pauseMs, signal);
      outcome = await this.#attempt(sending, readClocks(this.#env), same);
      if (outcome.kind !== "unsettled") return outcome;
    }
  }

  /** Never rejects. `reading`: from before anything is sent, since the belief of a grant counts from there. */
  #attempt(
    sending: Sending,
    reading: ClockReading,
    settled: (outcome: CommandOutcome) => CommandOutcome | Promise<CommandOutcome>,
  ): Promise<CommandOutcome> {
    const { op, request, token, routeBy, body, inLineMs, signal, deadlineMs } = sending;
    const timeoutMs = Math.max(1, deadlineMs - reading.monotonicMs) + inLineMs;
    const path = COMMAND_PATHS[op];
    const sent: Writable<RemoteRequest> = { method: "POST", path, routeBy, body, timeoutMs };
    if (signal !== undefined) sent.signal = signal;
    const { driftRatio } = this.drift;
    const received = (): ClockReading => readClocks(this.#env);
    return this.#transport.send(sent).then(
      (answer) =>
        settled(
          outcomeOf(answer, token, { reading, received, driftRatio }, isByHolder(request) ? request : null),
        ),
      (error: unknown) => settled(unsettled(asStoreError(error, "the request failed", "unknown"))),
    );
  }

  async #read(path: string): Promise<RemoteAnswer> {
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

const KIND_OF_STATUS: { readonly [status: number]: StoreErrorKind } = {
  400: "config",
  401: "auth",
  403: "auth",
  501: "config",
};

/** What stays the same over the attempts of a command. */
interface Sending {
  readonly op: LeaseOp;
  readonly request: Asked;
  readonly token: string;
  readonly body: object;
  readonly routeBy: string;
  /** How much longer an answer may take because the request waits in line. */
  readonly inLineMs: number;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number;
}

/** All but an operator's commands. */
function isByHolder(request: Asked): request is Asked & Question {
  return request.holder !== undefined;
}

function same(outcome: CommandOutcome): CommandOutcome {
  return outcome;
}

/** The operation is named beside it. */
type Asked = RequestOf<LeaseRequest> & { readonly holder?: string };

const COMMAND_PATHS: { readonly [op in LeaseOp]: string } = {
  acquire: "/v1/leases/acquire",
  renew: "/v1/leases/renew",
  release: "/v1/leases/release",
  use: "/v1/leases/use",
  resume: "/v1/leases/resume",
  handoff: "/v1/leases/handoff",
  revoke: "/v1/leases/revoke",
  break: "/v1/leases/break",
};

/** What the server does not take, or gets in another form. */
const NOT_SENT: ReadonlySet<string> = new Set(["op", "key", "caller", "timeoutMs"]);

/** The frequent ones are made field by field, which is many times faster; absent fields vanish on the way. */
function bodyOf(op: LeaseOp, request: Asked, token: string, wait: WaitInLine | undefined): object {
  if (op === "acquire") return acquireBody(request as RequestOf<AcquireRequest>, token, wait);
  if (op === "release" || op === "renew") return ownerBody(request as RequestOf<RenewRequest>, token);
  const body: Record<string, unknown> = { tenant: request.key.tenant, name: request.key.name };
  for (const [field, value] of Object.entries(request)) {
    if (value === undefined || NOT_SENT.has(field)) continue;
    body[field] = typeof value === "bigint" ? String(value) : value;
  }
  if (token !== "") body.token = token;
  return body;
}

function acquireBody(
  request: RequestOf<AcquireRequest>,
  token: string,
  wait: WaitInLine | undefined,
): object {
  const { key, holder, ttlMs, purpose, note, idempotencyKey, approval } = request;
  const { tenant, name } = key;
  const term = decimal(request.term);
  const waitMs = wait === undefined ? undefined : Math.floor(Math.min(wait.waitMs, LONGEST_LINE_MS));
  return { tenant, name, holder, ttlMs, purpose, token, waitMs, term, note, idempotencyKey, approval };
}

/** A release has neither a ttl nor a term. */
function ownerBody(request: RequestOf<RenewRequest>, token: string): object {
  const { key, holder, ttlMs, idempotencyKey, approval } = request;
  const { tenant, name } = key;
  const generation = decimal(request.generation);
  const term = decimal(request.term);
  return { tenant, name, holder, token, ttlMs, generation, term, idempotencyKey, approval };
}

function decimal(value: bigint | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
}

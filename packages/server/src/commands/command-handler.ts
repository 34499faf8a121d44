/**
 * The commands on a lease, as HTTP and the stream carry them: check the shape, check the access, execute, answer.
 * No rule about leases is here.
 */
import type { Env, LeaseOp, LeaseRecord } from "solehold";
import {
  type AcquireRequest,
  type CallContext,
  type CommandBody,
  type CommandOutcome,
  decodeRequest,
  encodeOutcome,
  encodeProblem,
  type LeaseRequest,
  type LeaseService,
  randomId,
  type WireAnswer,
} from "solehold/internal";
import type { TSchema } from "typebox";
import type { Call } from "../access/call.ts";
import { leaseKeyFor } from "../access/principal.ts";
import { clientGone, ProblemError } from "../protocol/problem.ts";
import {
  AcquireBody,
  BreakBody,
  HandoffBody,
  ReleaseBody,
  RenewBody,
  ResumeBody,
  RevokeBody,
  UseBody,
} from "../protocol/schemas/leases.ts";
import { type Check, checkOf } from "../protocol/validation.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { WaitOptions } from "../waiting/line.ts";
import { type GrantedTo, releaseUnclaimed } from "../waiting/release-unclaimed.ts";
import type { WaitQueue } from "../waiting/wait-queue.ts";
import type { WatchHub } from "../watch/watch-hub.ts";

export const COMMAND_SCHEMAS = {
  acquire: AcquireBody,
  renew: RenewBody,
  release: ReleaseBody,
  use: UseBody,
  resume: ResumeBody,
  handoff: HandoffBody,
  revoke: RevokeBody,
  break: BreakBody,
} as const satisfies { readonly [op in LeaseOp]: TSchema };

const CHECKS = Object.fromEntries(
  Object.entries(COMMAND_SCHEMAS).map(([op, schema]) => [op, checkOf(schema, "body")]),
) as { readonly [op in LeaseOp]: Check<TSchema> };

/** Renewals remembered to measure how late the next one comes: a sample, bounded. */
const REMEMBERED_RENEWALS = 65_536;

export interface CommandHandlerOptions {
  readonly env: Env;
  readonly service: LeaseService;
  readonly queue: WaitQueue;
  readonly hub: WatchHub;
  readonly metrics: Metrics;
}

export class CommandHandler {
  readonly #options: CommandHandlerOptions;
  readonly #renewedAtMs = new Map<string, number>();

  constructor(options: CommandHandlerOptions) {
    this.#options = options;
  }

  /** Many at once: each is answered on its own, in the order given. */
  async executeAll(op: LeaseOp, bodies: readonly unknown[], call: Call): Promise<readonly WireAnswer[]> {
    return await Promise.all(bodies.map((body) => this.execute(op, body, call)));
  }

  /** Never rejects for what a caller sent: a problem is an answer. */
  async execute(op: LeaseOp, body: unknown, call: Call): Promise<WireAnswer> {
    try {
      return await this.#execute(op, CHECKS[op](body) as CommandBody, call);
    } catch (error) {
      if (error instanceof ProblemError) return encodeProblem(error.input, call.traceId);
      throw error;
    }
  }

  async #execute(op: LeaseOp, body: CommandBody, call: Call): Promise<WireAnswer> {
    const { principal, traceId } = call;
    const request = decodeRequest(op, leaseKeyFor(principal, op, body), body);
    const context: CallContext = { traceId, caller: principal.id };
    const outcome = await this.#perform(request, body, context, call);
    this.#onDecided(request, outcome);
    const waitedMs = waitedMsOf(outcome, call);
    return encodeOutcome(op, outcome, { policy: this.#options.service.policy, traceId, waitedMs });
  }

  async #perform(
    request: LeaseRequest,
    body: CommandBody,
    context: CallContext,
    call: Call,
  ): Promise<CommandOutcome> {
    const { queue, service } = this.#options;
    if (request.op === "acquire") return await this.#acquire(request, body, context, call);
    if (request.op === "release") return await queue.release(request, context);
    return await service.execute(request, context);
  }

  async #acquire(
    request: AcquireRequest,
    { waitMs = 0 }: CommandBody,
    context: CallContext,
    { connection }: Call,
  ): Promise<CommandOutcome> {
    const { env, queue, metrics } = this.#options;
    const { token = randomId(env), idempotencyKey } = request;
    const repeatable: WaitOptions["repeatable"] =
      idempotencyKey !== undefined ? "by key" : request.token !== undefined ? "by token" : "no";
    const acquire: GrantedTo = {
      request: { ...request, token },
      context,
      options: { waitMs, connection, repeatable },
    };
    const startMs = env.monotonicMs();
    const outcome = await queue.acquire(acquire.request, context, acquire.options);
    if (waitMs > 0) metrics.waited((env.monotonicMs() - startMs) / 1_000, outcome.kind);
    return connection.isGone() ? await this.#unclaimed(acquire, outcome) : outcome;
  }

  /** The connection went between the grant and its answer: without this nobody would ever release it. */
  async #unclaimed(acquire: GrantedTo, outcome: CommandOutcome): Promise<CommandOutcome> {
    const released = await releaseUnclaimed(this.#options.service, acquire, outcome);
    if (released === null) return outcome;
    this.#onDecided({ ...acquire.request, op: "release" }, released);
    throw new ProblemError(clientGone());
  }

  /** Called once per decision: updates wait queues, watchers and metrics. */
  #onDecided({ op, key }: LeaseRequest, outcome: CommandOutcome): void {
    // What the same write replaced by the next grant never stood in the store.
    if (outcome.kind !== "applied" || outcome.next?.kind === "applied") return;
    const { queue, hub, metrics } = this.#options;
    const { lease, resumeFromLedgerRequired, replayed } = outcome.decision;
    queue.notice(key, lease);
    if (op !== "use") hub.decided(lease);
    if (op === "acquire" && resumeFromLedgerRequired && !replayed) metrics.takeover();
    if (op === "acquire" || op === "renew") this.#measureRenewal(op, lease);
  }

  /** The first renewal follows the grant, which its record names; only later ones have to be remembered. */
  #measureRenewal(op: "acquire" | "renew", lease: LeaseRecord): void {
    if (lease.renewals === 0) return;
    const id = `${lease.key.tenant}/${lease.key.name}@${lease.generation}`;
    const before = lease.renewals === 1 ? lease.grantedAtMs : this.#renewedAtMs.get(id);
    if (op === "renew" && before !== undefined) {
      this.#options.metrics.renewed((lease.renewedAtMs - before) / lease.ttlMs);
    }
    this.#renewedAtMs.delete(id);
    this.#renewedAtMs.set(id, lease.renewedAtMs);
    if (this.#renewedAtMs.size <= REMEMBERED_RENEWALS) return;
    const [oldest] = this.#renewedAtMs.keys();
    if (oldest !== undefined) this.#renewedAtMs.delete(oldest);
  }
}

/** Without a wait the whole time belongs to the request, and the caller counts from when it sent it. */
function waitedMsOf(outcome: CommandOutcome, { receivedMs }: Call): number {
  if (outcome.kind !== "applied") return 0;
  return Math.max(0, Math.floor(outcome.believedFrom.monotonicMs - receivedMs));
}

/**
 * The commands on a lease, as HTTP and the stream carry them: check the shape, check the access, execute, answer.
 * No rule about leases is here.
 */
import { type Env, keyNameProblem, type LeaseKey, type LeaseOp, type LeaseRecord } from "solehold";
import {
  type CallContext,
  type CommandOutcome,
  type LeaseRequest,
  type WaitEnd,
  WaitEndedError,
  type WaitQueue,
} from "solehold/internal";
import type { TSchema } from "typebox";
import { assertAllowed, tenantOf } from "../access/principal.ts";
import {
  clientGone,
  draining,
  ProblemError,
  type ProblemInput,
  refusal,
  tooMany,
} from "../protocol/problem.ts";
import { type Answer, commandAnswer, problemAnswer } from "../protocol/response-codec.ts";
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
import type { Call } from "./call.ts";

/** What every command's body has, and what some have. */
interface CommandBody {
  readonly tenant?: string;
  readonly name: string;
  readonly holder?: string;
  readonly token?: string;
  readonly generation?: string;
  readonly term?: string;
  readonly waitMs?: number;
}

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
  readonly queue: WaitQueue;
  readonly metrics: Metrics;
}

export class CommandHandler {
  readonly #options: CommandHandlerOptions;
  readonly #renewedAtMs = new Map<string, number>();

  constructor(options: CommandHandlerOptions) {
    this.#options = options;
  }

  /** Many at once: each is answered on its own, in the order given. */
  async executeAll(op: LeaseOp, bodies: readonly unknown[], call: Call): Promise<readonly Answer[]> {
    return await Promise.all(bodies.map((body) => this.execute(op, body, call)));
  }

  /** Never rejects for what a caller sent: a problem is an answer. */
  async execute(op: LeaseOp, body: unknown, call: Call): Promise<Answer> {
    try {
      return await this.#execute(op, CHECKS[op](body) as CommandBody, call);
    } catch (error) {
      if (error instanceof ProblemError) return problemAnswer(error.input, call.traceId);
      throw error;
    }
  }

  async #execute(op: LeaseOp, body: CommandBody, call: Call): Promise<Answer> {
    const { principal, traceId } = call;
    const tenant = tenantOf(principal, body.tenant);
    assertAllowed(principal, op, tenant, body.name);
    // The store is asked for the name before it is decided on: what is no name must not get that far.
    assertName(body.name);
    const request = requestOf(op, { tenant, name: body.name }, body);
    const outcome = await this.#perform(request, body.waitMs ?? 0, call);
    this.#measure(request, outcome);
    const waitedMs = waitedMsOf(outcome, call);
    return commandAnswer(op, outcome, { policy: this.#options.queue.policy, traceId, waitedMs });
  }

  async #perform(request: LeaseRequest, waitMs: number, call: Call): Promise<CommandOutcome> {
    const { env, queue, metrics } = this.#options;
    const { traceId, principal, connection } = call;
    const context: CallContext = { traceId, caller: principal.id };
    if (request.op !== "acquire") return await queue.execute(request, context);
    const startMs = env.monotonicMs();
    const outcome = await queue.execute(request, { ...context, wait: { waitMs }, recipient: connection });
    if (outcome.kind === "unsettled" && outcome.cause instanceof WaitEndedError)
      throw new ProblemError(PROBLEM_OF_END[outcome.cause.end](outcome.cause.message));
    if (waitMs > 0) metrics.waited((env.monotonicMs() - startMs) / 1_000, outcome.kind);
    return outcome;
  }

  #measure({ op }: LeaseRequest, outcome: CommandOutcome): void {
    if (outcome.kind !== "applied" || (op !== "acquire" && op !== "renew")) return;
    const { lease, resumeFromLedgerRequired, replayed } = outcome.decision;
    if (op === "acquire" && resumeFromLedgerRequired && !replayed) this.#options.metrics.takeover();
    this.#measureRenewal(op, lease);
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

/** Why a wait ended before its request was decided. */
const PROBLEM_OF_END: { readonly [end in WaitEnd]: (message: string) => ProblemInput } = {
  cancelled: clientGone,
  draining,
  "too-many-waiters": (message) => tooMany(message, 1_000),
};

export function assertName(name: string): void {
  const problem = keyNameProblem(name);
  if (problem !== null) throw new ProblemError(refusal("name", problem));
}

/** Without a wait the whole time belongs to the request, and the caller counts from when it sent it. */
function waitedMsOf(outcome: CommandOutcome, { receivedMs }: Call): number {
  if (outcome.kind !== "applied") return 0;
  return Math.max(0, Math.floor(outcome.believedFrom.monotonicMs - receivedMs));
}

/** The body's shape was checked. Decimal strings become bigints; whether they fit into 64 bits is for core to say. */
function requestOf(op: LeaseOp, key: LeaseKey, body: CommandBody): LeaseRequest {
  const { tenant: _tenant, name: _name, waitMs: _waitMs, generation, term, ...rest } = body;
  const request: Record<string, unknown> = { op, key, ...rest };
  if (generation !== undefined) request.generation = BigInt(generation);
  if (term !== undefined) request.term = BigInt(term);
  return request as unknown as LeaseRequest;
}

/**
 * The commands on a lease, as HTTP and the stream carry them: check the shape, check the access, execute, answer.
 * No rule about leases is here.
 */
import type { LeaseOp, LeaseRecord } from "solehold/internal";
import {
  BoundedMap,
  type CommandBody,
  type CommandOutcome,
  decodeRequest,
  delay,
  encodeOutcome,
  type LeaseRequest,
  type ProblemInput,
  type WaitEnd,
  WaitEndedError,
  type WaitQueue,
  type WireAnswer,
} from "solehold/internal";
import type { Static, TSchema } from "typebox";
import { type Call, contextOf } from "../access/call.ts";
import { answerToError, type ServerContext } from "../access/context.ts";
import { leaseKeyFor } from "../access/principal.ts";
import { clientGone, draining, ProblemError, tooMany } from "../protocol/problem.ts";
import {
  type AcquireAllBody,
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
import { acquireAll, type Decided } from "./acquire-all.ts";

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

/** Of the body of each command. */
export const COMMAND_CHECKS = Object.fromEntries(
  Object.entries(COMMAND_SCHEMAS).map(([op, schema]) => [op, checkOf(schema, "body")]),
) as { readonly [op in LeaseOp]: Check<TSchema> };

/** Renewals remembered to measure how late the next one comes: a sample, bounded. */
const REMEMBERED_RENEWALS = 65_536;

export interface CommandHandlerOptions
  extends Pick<ServerContext, "env" | "metrics" | "accessAudit" | "failures" | "limits"> {
  readonly queue: WaitQueue;
}

/** Of what arrived together: so that others come between. */
export const BEGUN_IN_ONE_TURN = 256;

export class CommandHandler {
  readonly #options: CommandHandlerOptions;
  readonly #renewedAtMs = new BoundedMap<number>(REMEMBERED_RENEWALS);

  constructor(options: CommandHandlerOptions) {
    this.#options = options;
  }

  /** Many at once: each is answered on its own, in the order given. */
  async executeAll(op: LeaseOp, bodies: readonly unknown[], call: Call): Promise<readonly WireAnswer[]> {
    const answers: Promise<WireAnswer>[] = [];
    for (const [index, body] of bodies.entries()) {
      if (index > 0 && index % BEGUN_IN_ONE_TURN === 0) await delay(this.#options.env, 0);
      answers.push(this.execute(op, body, call).catch((error) => answerToError(this.#options, error, call)));
    }
    return await Promise.all(answers);
  }

  /** Rejects with a ProblemError where nothing was decided. */
  async execute(op: LeaseOp, body: unknown, call: Call): Promise<WireAnswer> {
    return (await this.#decide(op, body, call)).answer;
  }

  /** Several names for one caller, all of them or none. */
  async acquireAll({ names, ...rest }: Static<typeof AcquireAllBody>, call: Call): Promise<WireAnswer> {
    const { queue } = this.#options;
    // Nothing is granted to a caller who may not have all of it.
    for (const name of names) leaseKeyFor(call.principal, "acquire", { ...rest, name });
    return await acquireAll(names, {
      acquire: (name) => this.#decide("acquire", { ...rest, name }, call),
      release: (request) => queue.execute(request, contextOf(call)),
    });
  }

  async #decide(op: LeaseOp, body: unknown, call: Call): Promise<Decided> {
    const { principal, traceId } = call;
    const command = COMMAND_CHECKS[op](body) as CommandBody;
    const request = decodeRequest(op, leaseKeyFor(principal, op, command), command);
    const outcome = await this.#perform(request, command.waitMs ?? 0, call);
    if (outcome.kind === "unsettled") this.#options.failures.failed(outcome.cause, traceId);
    this.#measure(request, outcome);
    const waitedMs = waitedMsOf(outcome, call);
    const { policy } = this.#options.queue;
    const answer = encodeOutcome(op, outcome, { key: request.key, policy, traceId, waitedMs });
    return { outcome, answer };
  }

  async #perform(request: LeaseRequest, waitMs: number, call: Call): Promise<CommandOutcome> {
    const { env, queue, metrics } = this.#options;
    const context = contextOf(call);
    if (request.op !== "acquire") return await queue.execute(request, context);
    const startMs = env.monotonicMs();
    const { waiters } = this.#options.limits;
    const free = waitMs > 0 ? waiters.take(call.principal, request.key.tenant) : null;
    const outcome = await queue
      .execute(request, { ...context, wait: { waitMs }, recipient: call })
      .finally(() => free?.());
    if (outcome.kind === "unsettled" && outcome.cause instanceof WaitEndedError) {
      call.waitedMs = env.monotonicMs() - startMs;
      throw new ProblemError(PROBLEM_OF_END[outcome.cause.end](outcome.cause.message));
    }
    if (waitMs > 0) {
      const tookMs = env.monotonicMs() - startMs;
      metrics.waited(tookMs / 1_000, outcome.kind);
      call.waitedMs = outcome.kind === "applied" ? waitedMsOf(outcome, call) : tookMs;
    }
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
    this.#renewedAtMs.set(id, lease.renewedAtMs);
  }
}

/** Why a wait ended before its request was decided. */
const PROBLEM_OF_END: { readonly [end in WaitEnd]: (message: string) => ProblemInput } = {
  cancelled: clientGone,
  draining,
  "too-many-waiters": (message) => tooMany(message, 1_000),
};

/** Without a wait the whole time belongs to the request, and the caller counts from when it sent it. */
function waitedMsOf(outcome: CommandOutcome, { receivedMs }: Call): number {
  if (outcome.kind !== "applied") return 0;
  return Math.max(0, Math.floor(outcome.believedFrom.monotonicMs - receivedMs));
}

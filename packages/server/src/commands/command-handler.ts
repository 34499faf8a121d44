/**
 * The eight commands on a lease, as HTTP and the stream carry them: check the shape, check the access, hand
 * over to the service, answer. No rule about leases is here.
 */
import { keyNameProblem, type LeaseKey, type LeaseOp, type Writable } from "solehold";
import type { CallContext, LeaseService, ServiceReply } from "solehold/internal";
import type { TSchema } from "typebox";
import { assertAllowed, tenantOf } from "../access/principal.ts";
import { briefAnswer } from "../protocol/brief.ts";
import { ProblemError, refusal } from "../protocol/problem.ts";
import { type Answer, commandAnswer, problemAnswer } from "../protocol/response-codec.ts";
import {
  AcquireBody,
  type AcquireInput,
  BreakBody,
  type BreakInput,
  HandoffBody,
  type HandoffInput,
  type OwnerInput,
  ReleaseBody,
  RenewBody,
  type RenewInput,
  ResumeBody,
  RevokeBody,
  type RevokeInput,
  UseBody,
  type UseInput,
} from "../protocol/schemas/leases.ts";
import { type Check, checkOf } from "../protocol/validation.ts";
import { bodyOfMessage, messageCheckOf } from "../stream/messages.ts";
import type { GrantedTo } from "../waiting/give-back.ts";
import type { Call } from "./call.ts";

interface Target {
  readonly tenant?: string;
  readonly name: string;
  readonly holder?: string;
  readonly token?: string;
}

const NO_BODY = Object.freeze({});

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

const MESSAGE_CHECKS = Object.fromEntries(
  Object.entries(COMMAND_SCHEMAS).map(([op, schema]) => [op, messageCheckOf(schema)]),
) as { readonly [op in LeaseOp]: (message: object) => boolean };

/** The envelope is taken off only where something is wrong: to say what. */
function checkedMessage(op: LeaseOp, message: object): Target {
  if (MESSAGE_CHECKS[op](message)) return message as Target;
  return CHECKS[op](bodyOfMessage(message)) as Target;
}

/** Where the answer to a command goes: one of these is called, once. */
export interface AnswerSink {
  answered(answer: Answer): void;
  failed(error: unknown): void;
}

/** What a command does once it is allowed. An acquire may wait in line. */
export interface CommandRunner {
  asked(key: LeaseKey, input: AcquireInput, call: Call): GrantedTo;
  acquire(asked: GrantedTo): Promise<ServiceReply>;
  /** What becomes of the reply to an acquire whose caller has gone meanwhile. */
  abandoned(asked: GrantedTo, reply: ServiceReply): Promise<ServiceReply>;
  /** What is released may go to somebody who waits for it. */
  release(request: ReleaseAsked, context: CallContext): Promise<ServiceReply>;
  /** Everything that was decided passes here. */
  decided(op: LeaseOp, key: LeaseKey, reply: ServiceReply, call: Call): void;
}

export class Commands {
  readonly #service: LeaseService;
  readonly #runner: CommandRunner;

  constructor(service: LeaseService, runner: CommandRunner) {
    this.#service = service;
    this.#runner = runner;
  }

  /** Many at once: each is answered on its own, in the order given. */
  async executeAll(op: LeaseOp, bodies: readonly unknown[], call: Call): Promise<readonly Answer[]> {
    return await Promise.all(bodies.map((body) => this.execute(op, body, call)));
  }

  /** A command as HTTP brings it. Never rejects for what a caller sent: a problem is an answer. */
  execute(op: LeaseOp, body: unknown, call: Call): Promise<Answer> {
    return new Promise((answered, failed) => {
      const sink: AnswerSink = { answered, failed };
      try {
        this.#execute(op, CHECKS[op](body) as Target, call, sink);
      } catch (error) {
        refuse(error, call, sink);
      }
    });
  }

  /**
   * A command as the stream brings it: `message` has the fields of the envelope beside those of the body. Calls
   * back instead of promising, because there are thousands a second.
   */
  executeMessage(op: LeaseOp, message: object, call: Call, sink: AnswerSink): void {
    try {
      this.#execute(op, checkedMessage(op, message), call, sink);
    } catch (error) {
      refuse(error, call, sink);
    }
  }

  /** What this throws, nothing was done about. */
  #execute(op: LeaseOp, input: Target, call: Call, sink: AnswerSink): void {
    const { principal } = call;
    const tenant = tenantOf(principal, input.tenant);
    assertAllowed(principal, op, tenant, input.name);
    // The store is asked for the name before it is decided on: what is no name must not get that far.
    assertName(input.name);
    const key: LeaseKey = { tenant, name: input.name };
    let asked: GrantedTo | null = null;
    const failed = (error: unknown): void => refuse(error, call, sink);
    const decided = (reply: ServiceReply): void => {
      let answer: Answer;
      try {
        answer = this.#answer(op, key, input, reply, call);
      } catch (error) {
        failed(error);
        return;
      }
      sink.answered(answer);
    };
    const performed = (reply: ServiceReply): void => {
      if (asked === null || !call.connection.isGone()) decided(reply);
      else this.#runner.abandoned(asked, reply).then(decided, failed);
    };
    if (op === "acquire") {
      asked = this.#runner.asked(key, input as AcquireInput, call);
      this.#runner.acquire(asked).then(performed, failed);
    } else this.#perform(op, key, input, call).then(performed, failed);
  }

  #answer(op: LeaseOp, key: LeaseKey, input: Target, reply: ServiceReply, call: Call): Answer {
    this.#runner.decided(op, key, reply, call);
    const inLineMs = waitedMs(reply, call);
    const brief = call.answers === "brief" ? briefAnswer(op, reply, input, inLineMs) : null;
    if (brief !== null) return { status: 200, body: NO_BODY, brief };
    return commandAnswer(op, reply, this.#service.manager.policy, inLineMs);
  }

  #perform(op: Exclude<LeaseOp, "acquire">, key: LeaseKey, input: Target, call: Call): Promise<ServiceReply> {
    const service = this.#service;
    const context = contextOf(call);
    switch (op) {
      case "renew":
        return service.renew(renewRequest(key, input as RenewInput), context);
      case "release":
        return this.#runner.release(releaseRequest(key, input as OwnerInput), context);
      case "use":
        return service.use(requestOf(key, input as UseInput), context);
      case "resume":
        return service.resume(requestOf(key, input as OwnerInput), context);
      case "handoff":
        return service.handOff(requestOf(key, input as HandoffInput), context);
      case "revoke":
        return service.revoke(requestOf(key, input as RevokeInput), context);
      case "break":
        return service.break(requestOf(key, input as BreakInput), context);
    }
  }
}

/** A problem is an answer. */
function refuse(error: unknown, { traceId }: Call, sink: AnswerSink): void {
  if (error instanceof ProblemError) sink.answered(problemAnswer(error.input, traceId));
  else sink.failed(error);
}

export function assertName(name: string): void {
  const problem = keyNameProblem(name);
  if (problem !== null) throw new ProblemError(refusal("name", problem));
}

export function contextOf({ principal, traceId }: Call): CallContext {
  return { traceId, caller: principal.id };
}

/** Without a wait the whole time belongs to the request, and the caller counts from when it sent it. */
function waitedMs({ outcome }: ServiceReply, { receivedMs }: Call): number {
  if (outcome.kind !== "applied") return 0;
  return Math.max(0, Math.floor(outcome.believedFrom.monotonicMs - receivedMs));
}

type RequestFrom<Input> = Omit<Input, "tenant" | "name" | "generation" | "term"> & {
  readonly key: LeaseKey;
  generation?: bigint;
  term?: bigint;
};

/** Decimal strings become bigints; whether they fit into 64 bits is for core to say. */
function requestOf<Input extends Target & { generation?: string; term?: string }>(
  key: LeaseKey,
  input: Input,
): RequestFrom<Input> {
  const { tenant: _tenant, name: _name, generation, term, ...rest } = bodyOfMessage(input) as Input;
  const request: RequestFrom<Input> = { key, ...rest };
  if (generation !== undefined) request.generation = BigInt(generation);
  if (term !== undefined) request.term = BigInt(term);
  return request;
}

// The three frequent ones are built field by field: leaving fields out of a copy takes many times as long.

/** `token`: the caller's, or the one that was drawn for it. */
export function acquireRequest(
  key: LeaseKey,
  input: AcquireInput,
  token: string,
): Parameters<LeaseService["grant"]>[0] & { readonly token: string } {
  const { holder, ttlMs, purpose, term, note, idempotencyKey, approval } = input;
  const request: Writable<ReturnType<typeof acquireRequest>> = { op: "acquire", key, holder, token };
  if (ttlMs !== undefined) request.ttlMs = ttlMs;
  if (purpose !== undefined) request.purpose = purpose;
  if (term !== undefined) request.term = BigInt(term);
  if (note !== undefined) request.note = note;
  if (idempotencyKey !== undefined) request.idempotencyKey = idempotencyKey;
  if (approval !== undefined) request.approval = approval;
  return request;
}

function renewRequest(key: LeaseKey, input: RenewInput): Parameters<LeaseService["renew"]>[0] {
  const { holder, token, ttlMs, term } = input;
  const request: Writable<Parameters<LeaseService["renew"]>[0]> = { op: "renew", key, holder, token };
  if (ttlMs !== undefined) request.ttlMs = ttlMs;
  if (term !== undefined) request.term = BigInt(term);
  return aboutGrant(request, input);
}

export type ReleaseAsked = Parameters<LeaseService["release"]>[0];

function releaseRequest(key: LeaseKey, input: OwnerInput): ReleaseAsked {
  const { holder, token } = input;
  const request: Writable<ReleaseAsked> = { op: "release", key, holder, token };
  return aboutGrant(request, input);
}

function aboutGrant<Request extends { generation?: bigint; idempotencyKey?: string }>(
  request: Request,
  { generation, idempotencyKey }: OwnerInput,
): Request {
  if (generation !== undefined) request.generation = BigInt(generation);
  if (idempotencyKey !== undefined) request.idempotencyKey = idempotencyKey;
  return request;
}

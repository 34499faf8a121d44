/** What callers ask of an executor, and how it becomes a command: defaults, hashes, idempotency marks. */

import type { Approval } from "../approvals/index.ts";
import {
  type AcquireCommand,
  DEFAULT_PURPOSE,
  type FieldProblem,
  type IdempotencyMark,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  MAX_TOKEN_LENGTH,
  type Metadata,
  NO_METADATA,
  nameProblem,
  type Purpose,
  type ReleaseCommand,
  type RenewCommand,
  type RevokeCommand,
  slotsProblem,
  tokenProblem,
} from "../core/index.ts";
import type { StoreCapabilities } from "../store/index.ts";
import type { CallContext } from "./executor.ts";
import { hashIdempotencyKey, hashToken, sealToken, sha256 } from "./tokens.ts";

export const MAX_IDEMPOTENCY_KEY_LENGTH = 128;

/** What a caller presents for a key under an approval rule: its request's nonce and signatures over it. */
export interface PresentedApprovals {
  readonly nonce: string;
  readonly approvals: readonly Approval[];
}

/** For building a value field by field: spreading optional parts into it is many times slower. */
export type Writable<Value> = { -readonly [field in keyof Value]: Value[field] };

interface RequestBase {
  readonly key: LeaseKey;
  /** Signed consent to this request. Refused by an executor that has no layer to check it. */
  readonly approval?: PresentedApprovals;
  /** Repeating a request with the same key gets the first answer again, over restarts too. */
  readonly idempotencyKey?: string;
  /** Give up after this: what was done may then be unknown. The executor's default when not given. */
  readonly timeoutMs?: number;
}

interface OwnerRequest extends RequestBase {
  readonly holder: string;
  readonly token: string;
  readonly generation?: bigint;
}

export interface AcquireRequest extends RequestBase {
  readonly op: "acquire";
  readonly holder: string;
  readonly ttlMs?: number;
  readonly purpose?: Purpose;
  /** The token that the grant shall carry; random when not given. Repeating it finds the same grant. */
  readonly token?: string;
  readonly term?: bigint;
  readonly note?: string;
  /** Data of programs about the lease. */
  readonly metadata?: Metadata;
  /** Nobody may claim the key for so long after the grant, even if it is released or expires before. */
  readonly holdAtLeastMs?: number;
  /** Nobody may claim the key for so long after the grant expired. The policy's when not given. */
  readonly lockDelayMs?: number;
  /** How many may hold the name at a time: any free slot of so many is granted. Default 1. */
  readonly slots?: number;
  /** Among those who wait for the key the higher one goes first, for a while (waiting/precedence.ts). 0, the default, to 100. */
  readonly priority?: number;
  /** The ticket with which the caller waits for the key, see waiting/. */
  readonly ticket?: string;
}

export interface RenewRequest extends OwnerRequest {
  readonly op: "renew";
  /** The lease's own when it is left out. */
  readonly ttlMs?: number;
  readonly term?: bigint;
}

export interface ReleaseRequest extends OwnerRequest {
  readonly op: "release";
  /** Release only what the write with this nonce left behind. */
  readonly onlyNonce?: string;
  /** Grant the lease to this waiter with the same write, where that is possible. */
  readonly next?: NextWaiter;
  /** Keep the released lease for the waiter with this ticket, for so long. */
  readonly reserveFor?: ReleaseCommand["reserveFor"];
}

/** An acquire that a release may serve, and the context in which it was asked. */
export interface NextWaiter {
  readonly request: AcquireRequest & { readonly token: string };
  readonly context: CallContext;
}

export interface UseRequest extends OwnerRequest {
  readonly op: "use";
  readonly purpose: Purpose;
}

export interface ResumeRequest extends OwnerRequest {
  readonly op: "resume";
}

export interface HandoffRequest extends OwnerRequest {
  readonly op: "handoff";
  readonly successor: string;
  readonly withinMs: number;
}

export interface RevokeRequest extends RequestBase {
  readonly op: "revoke";
  readonly generation?: bigint;
}

export interface BreakRequest extends RequestBase {
  readonly op: "break";
  readonly periodMs: number;
  readonly generation?: bigint;
}

export type LeaseRequest =
  | AcquireRequest
  | RenewRequest
  | ReleaseRequest
  | UseRequest
  | ResumeRequest
  | HandoffRequest
  | RevokeRequest
  | BreakRequest;

const OWNER_OPS: ReadonlySet<LeaseRequest["op"]> = new Set(["renew", "release", "use", "resume", "handoff"]);

/** A problem with what only the executor sees: the token and the idempotency key in the clear, unchecked approvals. */
export function requestProblem(
  request: LeaseRequest,
  token: string | undefined,
  context: CallContext,
): FieldProblem | null {
  const { key, idempotencyKey, approval } = request;
  if (typeof key !== "object" || key === null)
    return { field: "key", message: "must be an object with tenant and name" };
  if (token === undefined && OWNER_OPS.has(request.op))
    return { field: "token", message: `is required by ${request.op}: pass the one that the acquire gave` };
  if (token !== undefined) {
    const problem = tokenProblem(token, MAX_TOKEN_LENGTH);
    if (problem !== null) return { field: "token", message: problem };
  }
  if (idempotencyKey !== undefined) {
    const problem = nameProblem(idempotencyKey, MAX_IDEMPOTENCY_KEY_LENGTH);
    if (problem !== null) return { field: "idempotencyKey", message: problem };
  }
  if (approval !== undefined && context.approval === undefined)
    return { field: "approval", message: UNCHECKED_APPROVAL };
  if (request.op !== "acquire") return null;
  if (approval !== undefined && (request.slots ?? 1) !== 1)
    return { field: "slots", message: "cannot be asked for with an approval, which is for one lease" };
  return slotsProblem(key.name, request.slots) ?? priorityProblem(request.priority);
}

function priorityProblem(priority: unknown): FieldProblem | null {
  if (priority === undefined) return null;
  const isInRange = typeof priority === "number" && priority >= 0 && priority <= MAX_PRIORITY;
  if (isInRange && Number.isInteger(priority)) return null;
  const message = `must be a whole number from 0 to ${MAX_PRIORITY}, got ${String(priority)}`;
  return { field: "priority", message };
}

/**
 * A minimum hold where the store has no clock: a new process would count the whole time again, and a job of
 * short-lived processes would never run.
 */
export function clockProblem(request: LeaseRequest, clock: StoreCapabilities["clock"]): FieldProblem | null {
  if (clock !== "none" || request.op !== "acquire" || (request.holdAtLeastMs ?? 0) === 0) return null;
  return { field: "holdAtLeastMs", message: "needs a store with a clock, and this one has none" };
}

export const MAX_PRIORITY = 100;
const UNCHECKED_APPROVAL =
  "is not checked here: connect to a server that has an approval policy, or leave the approval out";

/** What a command is made of besides the request. */
export interface CommandParts {
  /** The one that a grant will carry, or that proves ownership. Empty for an operator's command. */
  readonly token: string;
  /** Its hash, where it is known already. */
  readonly tokenHash?: string | null;
  readonly nonce: string;
  readonly policy: LeasePolicy;
  readonly context: CallContext;
}

// Commands are built field by field: spreading optional parts costs more than the decision itself.

export function commandOf(request: LeaseRequest, parts: CommandParts): LeaseCommand {
  const command = bareCommand(request, parts);
  const { generation } = request as OwnerRequest;
  if (generation !== undefined) (command as Writable<RenewCommand>).generation = generation;
  const { idempotencyKey } = request;
  if (idempotencyKey !== undefined)
    (command as Writable<LeaseCommand>).idempotency = markOf(request, idempotencyKey, parts);
  return command;
}

function bareCommand(request: LeaseRequest, parts: CommandParts): LeaseCommand {
  const { nonce, context } = parts;
  const { key } = request;
  switch (request.op) {
    case "acquire":
      return acquireCommand(request, parts);
    case "renew": {
      const { holder, ttlMs, term } = request;
      const tokenHash = hashOf(parts);
      const command: Writable<RenewCommand> = { op: "renew", key, holder, tokenHash, nonce };
      if (ttlMs !== undefined) command.ttlMs = ttlMs;
      if (term !== undefined) command.term = term;
      if (context.approval !== undefined && context.approval !== null) command.approval = context.approval;
      return command;
    }
    case "release": {
      const { holder, onlyNonce, next, reserveFor } = request;
      const tokenHash = hashOf(parts);
      const command: Writable<ReleaseCommand> = { op: "release", key, holder, tokenHash, nonce };
      if (onlyNonce !== undefined) command.onlyNonce = onlyNonce;
      if (next !== undefined) command.next = nextCommand(next, parts);
      if (reserveFor !== undefined) command.reserveFor = reserveFor;
      return command;
    }
    case "use":
      return {
        op: "use",
        key,
        holder: request.holder,
        tokenHash: hashOf(parts),
        nonce,
        purpose: request.purpose,
      };
    case "resume":
      return { op: "resume", key, holder: request.holder, tokenHash: hashOf(parts), nonce };
    case "handoff": {
      const { holder, successor, withinMs } = request;
      return { op: "handoff", key, holder, tokenHash: hashOf(parts), nonce, successor, withinMs };
    }
    case "revoke":
      return { op: "revoke", key, nonce, ...approvalOf(context) };
    case "break":
      return { op: "break", key, nonce, periodMs: request.periodMs, ...approvalOf(context) };
  }
}

function acquireCommand(request: AcquireRequest, parts: CommandParts): AcquireCommand {
  const { policy, nonce, context } = parts;
  const { key, holder, ttlMs = policy.defaultTtlMs, purpose = DEFAULT_PURPOSE, term, note } = request;
  const tokenHash = hashOf(parts);
  const command: Writable<AcquireCommand> = {
    op: "acquire",
    key,
    holder,
    purpose,
    ttlMs,
    tokenHash,
    // A token is unique to its grant: finding it in the record means that this grant is already ours.
    provenTokenHash: tokenHash,
    nonce,
  };
  if (term !== undefined) command.term = term;
  if (note !== undefined) command.note = note;
  if (request.metadata !== undefined) command.metadata = request.metadata;
  if (request.holdAtLeastMs !== undefined) command.holdAtLeastMs = request.holdAtLeastMs;
  if (request.lockDelayMs !== undefined) command.lockDelayMs = request.lockDelayMs;
  if (request.ticket !== undefined) command.ticket = request.ticket;
  if (context.quotaExhausted === true) command.quotaExhausted = true;
  if (context.approval !== undefined && context.approval !== null) command.approval = context.approval;
  return command;
}

/** Its nonce is set by the decision: it is that of the release. */
function nextCommand({ request, context }: NextWaiter, { nonce, policy }: CommandParts): AcquireCommand {
  return commandOf(request, { token: request.token, nonce, policy, context }) as AcquireCommand;
}

function approvalOf({ approval }: CallContext): Pick<RevokeCommand, "approval"> {
  return approval === undefined || approval === null ? {} : { approval };
}

function hashOf({ token, tokenHash }: CommandParts): string {
  return tokenHash ?? hashToken(token);
}

function markOf(
  request: LeaseRequest,
  idempotencyKey: string,
  parts: CommandParts,
): Omit<IdempotencyMark, "op" | "grant"> {
  const { token, policy, context } = parts;
  // A release leaves no token in the record that a repetition could be compared with.
  const proof = request.op === "release" ? [hashOf(parts)] : [];
  return {
    keyHash: hashIdempotencyKey(request.key.tenant, idempotencyKey),
    fingerprint: fingerprintOf(request, context.caller ?? "", policy, proof),
    sealedToken: request.op === "acquire" ? sealToken(token, idempotencyKey) : "",
  };
}

/** None for a request without metadata: its fingerprint is as it was before there was any. */
function metadataArguments(metadata: Metadata): readonly string[] {
  return Object.keys(metadata)
    .sort()
    .map((name) => `metadata.${name}=${metadata[name]}`);
}

/** Every argument that changes what is asked for. The token of an acquire does not: a repeat after a restart has another. */
function fingerprintOf(
  request: LeaseRequest,
  caller: string,
  policy: LeasePolicy,
  proof: readonly string[],
): string {
  const { op } = request;
  const argument = (name: string, value: unknown): string =>
    `${name}=${value === undefined ? "" : String(value)}`;
  const fields: { readonly [field: string]: unknown } = { ...request };
  const ttlMs = op === "acquire" ? (fields.ttlMs ?? policy.defaultTtlMs) : fields.ttlMs;
  const names = ["holder", "purpose", "term", "note", "generation", "successor", "withinMs", "periodMs"];
  return sha256(
    caller,
    op,
    request.key.name,
    argument("ttlMs", ttlMs),
    ...names.map((name) => argument(name, fields[name])),
    ...(request.op === "acquire" ? metadataArguments(request.metadata ?? NO_METADATA) : []),
    // Only where they are given, for the same reason.
    ...["holdAtLeastMs", "lockDelayMs"].flatMap((name) =>
      fields[name] === undefined ? [] : [argument(name, fields[name])],
    ),
    ...proof,
  );
}

/** What callers ask of a manager, and how it becomes a command: defaults, hashes, idempotency marks. */

import type { Approval } from "../coordinator/index.ts";
import {
  type AcquireCommand,
  type BreakCommand,
  DEFAULT_PURPOSE,
  type IdempotencyMark,
  type LeaseCommand,
  type LeaseKey,
  type LeasePolicy,
  MAX_TOKEN_LENGTH,
  nameProblem,
  type Purpose,
  type RenewCommand,
  type RevokeCommand,
  tokenProblem,
} from "../core/index.ts";
import { hashIdempotencyKey, hashToken, sealToken, sha256 } from "./secrets.ts";

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
  /** For a service that asks for approvals; a manager over a store has nobody to check them. */
  readonly approval?: PresentedApprovals;
  /** Repeating a request with the same key gets the first answer again, over restarts too. */
  readonly idempotencyKey?: string;
  /** Who is calling, when the caller was authenticated: the idempotency key is bound to it. */
  readonly caller?: string;
  /** Give up after this: what was done may then be unknown. The manager's default when not given. */
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
}

export interface RenewRequest extends OwnerRequest {
  readonly op: "renew";
  readonly ttlMs?: number;
  readonly term?: bigint;
}

export interface ReleaseRequest extends OwnerRequest {
  readonly op: "release";
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

/** A problem with what only the manager sees: the token and the idempotency key in the clear. */
export function requestProblem(
  request: LeaseRequest,
): { readonly field: string; readonly message: string } | null {
  if (typeof request.key !== "object" || request.key === null)
    return { field: "key", message: "must be an object with tenant and name" };
  if ("token" in request && request.token !== undefined) {
    const problem = tokenProblem(request.token, MAX_TOKEN_LENGTH);
    if (problem !== null) return { field: "token", message: problem };
  }
  if (request.idempotencyKey !== undefined) {
    const problem = nameProblem(request.idempotencyKey, MAX_IDEMPOTENCY_KEY_LENGTH);
    if (problem !== null) return { field: "idempotencyKey", message: problem };
  }
  return null;
}

/** A request may be repeated with another nonce: every attempt to write has its own. */
export function withNonce(command: LeaseCommand, nonce: string): LeaseCommand {
  return { ...command, nonce };
}

/**
 * `token` is the one that a grant will carry, or that proves ownership; empty for an operator's command.
 * Field by field, because copying "all but these" costs more than the decision itself.
 */
export function commandOf(
  request: LeaseRequest,
  token: string,
  policy: LeasePolicy,
  nonce: string,
): LeaseCommand {
  const command = bareCommand(request, token, policy, nonce);
  const mark = markFor(request, token, policy);
  return mark === undefined ? command : { ...command, idempotency: mark };
}

function bareCommand(request: LeaseRequest, token: string, policy: LeasePolicy, nonce: string): LeaseCommand {
  const { op, key } = request;
  if (op === "revoke" || op === "break") {
    const { generation } = request;
    const target = generation === undefined ? { key, nonce } : { key, nonce, generation };
    return op === "revoke" ? { op, ...target } : { op, ...target, periodMs: request.periodMs };
  }
  const tokenHash = hashToken(token);
  const { holder } = request;
  if (op === "acquire") {
    const { ttlMs = policy.defaultTtlMs, purpose = DEFAULT_PURPOSE, term, note } = request;
    // A token is unique to its grant: finding it in the record means that this grant is already ours.
    const command: Writable<AcquireCommand> = {
      op,
      key,
      holder,
      purpose,
      ttlMs,
      tokenHash,
      provenTokenHash: tokenHash,
      nonce,
    };
    if (term !== undefined) command.term = term;
    if (note !== undefined) command.note = note;
    return command;
  }
  const command = ownerCommand(request, tokenHash, policy, nonce);
  if (request.generation !== undefined) command.generation = request.generation;
  return command;
}

type OwnerRequests = Exclude<LeaseRequest, AcquireRequest | RevokeRequest | BreakRequest>;
type OwnerCommands = Exclude<LeaseCommand, AcquireCommand | RevokeCommand | BreakCommand>;

function ownerCommand(
  request: OwnerRequests,
  tokenHash: string,
  policy: LeasePolicy,
  nonce: string,
): Writable<OwnerCommands> {
  const { op, key, holder } = request;
  switch (op) {
    case "renew": {
      const { ttlMs = policy.defaultTtlMs, term } = request;
      const command: Writable<RenewCommand> = { op, key, holder, tokenHash, nonce, ttlMs };
      if (term !== undefined) command.term = term;
      return command;
    }
    case "use":
      return { op, key, holder, tokenHash, nonce, purpose: request.purpose };
    case "handoff": {
      const { successor, withinMs } = request;
      return { op, key, holder, tokenHash, nonce, successor, withinMs };
    }
    default:
      return { op, key, holder, tokenHash, nonce };
  }
}

function markFor(
  request: LeaseRequest,
  token: string,
  policy: LeasePolicy,
): Omit<IdempotencyMark, "op"> | undefined {
  const { idempotencyKey, caller = "" } = request;
  if (idempotencyKey === undefined) return undefined;
  return {
    keyHash: hashIdempotencyKey(request.key.tenant, idempotencyKey),
    fingerprint: fingerprintOf(request, caller, policy),
    sealedToken: request.op === "acquire" ? sealToken(token, idempotencyKey) : "",
  };
}

/** Every argument that changes what is asked for. The token does not: a repeat after a restart has another. */
function fingerprintOf(request: LeaseRequest, caller: string, policy: LeasePolicy): string {
  const argument = (name: string, value: unknown): string =>
    `${name}=${value === undefined ? "" : String(value)}`;
  const fields: { readonly [field: string]: unknown } = { ...request };
  const ttlMs = "ttlMs" in request ? (request.ttlMs ?? policy.defaultTtlMs) : undefined;
  const names = ["holder", "purpose", "term", "note", "generation", "successor", "withinMs", "periodMs"];
  return sha256(
    caller,
    request.op,
    request.key.name,
    argument("ttlMs", ttlMs),
    ...names.map((name) => argument(name, fields[name])),
  );
}

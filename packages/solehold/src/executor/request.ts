/** What callers ask of a manager, and how it becomes a command: defaults, hashes, idempotency marks. */

import type { Approval } from "../approvals/index.ts";
import {
  type AcquireCommand,
  type BreakCommand,
  DEFAULT_PURPOSE,
  type FieldProblem,
  type HandoffCommand,
  type IdempotencyMark,
  type LeaseCommand,
  type LeaseKey,
  type LeaseOp,
  type LeasePolicy,
  MAX_TOKEN_LENGTH,
  nameProblem,
  type Purpose,
  type ReleaseCommand,
  type RenewCommand,
  type ResumeCommand,
  type RevokeCommand,
  tokenProblem,
  type UseCommand,
} from "../core/index.ts";
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

/** A request whose operation is the method that takes it. */
export type RequestOf<Request extends LeaseRequest> = Omit<Request, "op">;

/** A problem with what only the manager sees: the token and the idempotency key in the clear. */
export function requestProblem(request: RequestBase, token: string | undefined): FieldProblem | null {
  const { key, idempotencyKey } = request;
  if (typeof key !== "object" || key === null)
    return { field: "key", message: "must be an object with tenant and name" };
  if (token !== undefined) {
    const problem = tokenProblem(token, MAX_TOKEN_LENGTH);
    if (problem !== null) return { field: "token", message: problem };
  }
  if (idempotencyKey !== undefined) {
    const problem = nameProblem(idempotencyKey, MAX_IDEMPOTENCY_KEY_LENGTH);
    if (problem !== null) return { field: "idempotencyKey", message: problem };
  }
  return null;
}

/** What a command is made of besides the request. */
export interface CommandParts {
  /** The one that a grant will carry, or that proves ownership. */
  readonly token: string;
  /** Its hash, where it is known already. */
  readonly tokenHash?: string | null;
  readonly nonce: string;
  readonly policy: LeasePolicy;
}

// Commands are built field by field, because copying "all but these" costs more than the decision itself.

export function acquireCommand(request: RequestOf<AcquireRequest>, parts: CommandParts): AcquireCommand {
  const { policy, token, nonce } = parts;
  const { key, holder, ttlMs = policy.defaultTtlMs, purpose = DEFAULT_PURPOSE, term, note } = request;
  const tokenHash = parts.tokenHash ?? hashToken(token);
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
  return marked(command, request, parts);
}

export function renewCommand(request: RequestOf<RenewRequest>, parts: CommandParts): RenewCommand {
  const { policy, token, nonce } = parts;
  const { key, holder, ttlMs = policy.defaultTtlMs, term } = request;
  const tokenHash = parts.tokenHash ?? hashToken(token);
  const command: Writable<RenewCommand> = { op: "renew", key, holder, tokenHash, nonce, ttlMs };
  if (term !== undefined) command.term = term;
  return ofGeneration(command, request, parts);
}

export function releaseCommand(request: RequestOf<ReleaseRequest>, parts: CommandParts): ReleaseCommand {
  const { key, holder } = request;
  const { token, nonce } = parts;
  const tokenHash = parts.tokenHash ?? hashToken(token);
  return ofGeneration({ op: "release", key, holder, tokenHash, nonce }, request, parts);
}

export function useCommand(request: RequestOf<UseRequest>, parts: CommandParts): UseCommand {
  const { purpose } = request;
  return ofGeneration({ op: "use", ...proofOf(request, parts), purpose }, request, parts);
}

export function resumeCommand(request: RequestOf<ResumeRequest>, parts: CommandParts): ResumeCommand {
  return ofGeneration({ op: "resume", ...proofOf(request, parts) }, request, parts);
}

export function handoffCommand(request: RequestOf<HandoffRequest>, parts: CommandParts): HandoffCommand {
  const { successor, withinMs } = request;
  return ofGeneration({ op: "handoff", ...proofOf(request, parts), successor, withinMs }, request, parts);
}

/** For commands that are rare enough to be built from parts. */
function proofOf(
  { key, holder }: OwnerRequest,
  { token, tokenHash, nonce }: CommandParts,
): Omit<ReleaseCommand, "op"> {
  return { key, holder, tokenHash: tokenHash ?? hashToken(token), nonce };
}

export function revokeCommand(request: RequestOf<RevokeRequest>, parts: CommandParts): RevokeCommand {
  return ofGeneration({ op: "revoke", key: request.key, nonce: parts.nonce }, request, parts);
}

export function breakCommand(request: RequestOf<BreakRequest>, parts: CommandParts): BreakCommand {
  const { key, periodMs } = request;
  return ofGeneration({ op: "break", key, nonce: parts.nonce, periodMs }, request, parts);
}

/** The command speaks of one grant only, when the request does. */
function ofGeneration<Command extends Exclude<LeaseCommand, AcquireCommand>>(
  command: Command,
  request: RequestBase & { readonly generation?: bigint },
  parts: CommandParts,
): Command {
  const { generation } = request;
  return marked(generation === undefined ? command : { ...command, generation }, request, parts);
}

function marked<Command extends LeaseCommand>(
  command: Command,
  request: RequestBase,
  parts: CommandParts,
): Command {
  const { idempotencyKey } = request;
  return idempotencyKey === undefined
    ? command
    : { ...command, idempotency: markOf(command.op, request, idempotencyKey, parts) };
}

function markOf(
  op: LeaseOp,
  request: RequestBase,
  idempotencyKey: string,
  { token, policy }: CommandParts,
): Omit<IdempotencyMark, "op"> {
  return {
    keyHash: hashIdempotencyKey(request.key.tenant, idempotencyKey),
    fingerprint: fingerprintOf(op, request, policy),
    sealedToken: op === "acquire" ? sealToken(token, idempotencyKey) : "",
  };
}

/** Every argument that changes what is asked for. The token does not: a repeat after a restart has another. */
function fingerprintOf(op: LeaseOp, request: RequestBase, policy: LeasePolicy): string {
  const argument = (name: string, value: unknown): string =>
    `${name}=${value === undefined ? "" : String(value)}`;
  const fields: { readonly [field: string]: unknown } = { ...request };
  const ttlMs = op === "acquire" || op === "renew" ? (fields.ttlMs ?? policy.defaultTtlMs) : undefined;
  const names = ["holder", "purpose", "term", "note", "generation", "successor", "withinMs", "periodMs"];
  return sha256(
    request.caller ?? "",
    op,
    request.key.name,
    argument("ttlMs", ttlMs),
    ...names.map((name) => argument(name, fields[name])),
  );
}

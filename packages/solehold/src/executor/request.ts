/** What callers ask of an executor, and how it becomes a command: defaults, hashes, idempotency marks. */

import type { PresentedApprovals } from "../approvals/index.ts";
import {
  type AcquireCommand,
  type BreakCommand,
  DEFAULT_PURPOSE,
  describeNumber,
  type FieldProblem,
  type HandoffCommand,
  type IdempotencyMark,
  type LeaseCommand,
  type LeaseKey,
  type LeaseOp,
  type LeasePolicy,
  MAX_TOKEN_LENGTH,
  type Metadata,
  NO_METADATA,
  nameProblem,
  type ReleaseCommand,
  type RenewCommand,
  type ResumeCommand,
  type RevokeCommand,
  slotsProblem,
  tokenProblem,
  type UseCommand,
} from "../core/index.ts";
import type { StoreCapabilities } from "../store/index.ts";
import type { CallContext } from "./executor.ts";
import { hashIdempotencyKey, hashToken, sealToken, sha256 } from "./tokens.ts";

export const MAX_IDEMPOTENCY_KEY_LENGTH = 128;

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

// What a request has in common with its command is described there (core/command.ts).

type AcquireParts =
  | "op"
  | "holder"
  | "term"
  | "note"
  | "metadata"
  | "holdAtLeastMs"
  | "lockDelayMs"
  | "ticket";

export interface AcquireRequest
  extends RequestBase,
    Pick<AcquireCommand, AcquireParts>,
    Partial<Pick<AcquireCommand, "ttlMs" | "purpose">> {
  /** The token that the grant shall carry; random when not given. Repeating it finds the same grant. */
  readonly token?: string;
  /** How many may hold the name at a time: any free slot of so many is granted. Default 1. */
  readonly slots?: number;
  /** Among those who wait for the key the higher one goes first, for a while (waiting/precedence.ts). 0, the default, to 100. */
  readonly priority?: number;
}

export interface ReleaseRequest
  extends OwnerRequest,
    Pick<ReleaseCommand, "op" | "onlyNonce" | "reserveFor"> {
  /** Grant the lease to this waiter with the same write, where that is possible. */
  readonly next?: NextWaiter;
}

/** An acquire that a release may serve, and the context in which it was asked. */
export interface NextWaiter {
  readonly request: AcquireRequest & { readonly token: string };
  readonly context: CallContext;
}

export type RenewRequest = OwnerRequest & Pick<RenewCommand, "op" | "ttlMs" | "term">;
export type UseRequest = OwnerRequest & Pick<UseCommand, "op" | "purpose">;
export type ResumeRequest = OwnerRequest & Pick<ResumeCommand, "op">;
export type HandoffRequest = OwnerRequest & Pick<HandoffCommand, "op" | "successor" | "withinMs">;
export type RevokeRequest = RequestBase & Pick<RevokeCommand, "op" | "generation">;
export type BreakRequest = RequestBase & Pick<BreakCommand, "op" | "generation" | "periodMs">;

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
  const message = `must be a whole number from 0 to ${MAX_PRIORITY}, got ${describeNumber(priority)}`;
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

/** What a command takes from its request as it is, and nothing else that a caller may have put there. */
const TAKEN = {
  acquire: [
    ...(["holder", "purpose", "ttlMs", "term", "note", "metadata"] as const),
    ...(["holdAtLeastMs", "lockDelayMs", "ticket"] as const),
  ],
  renew: ["holder", "generation", "ttlMs", "term"],
  release: ["holder", "generation", "onlyNonce", "reserveFor"],
  use: ["holder", "generation", "purpose"],
  resume: ["holder", "generation"],
  handoff: ["holder", "generation", "successor", "withinMs"],
  revoke: ["generation"],
  break: ["generation", "periodMs"],
} as const satisfies {
  readonly [op in LeaseOp]: readonly (keyof Extract<LeaseCommand, { readonly op: op }>)[];
};

export function commandOf(request: LeaseRequest, parts: CommandParts): LeaseCommand {
  const { op, key, idempotencyKey } = request;
  const { nonce, policy, context } = parts;
  const given = request as unknown as { readonly [field: string]: unknown };
  const command: { [field: string]: unknown } =
    op === "acquire"
      ? { op, key, nonce, purpose: DEFAULT_PURPOSE, ttlMs: policy.defaultTtlMs }
      : { op, key, nonce };
  for (const name of TAKEN[op] ?? []) if (given[name] !== undefined) command[name] = given[name];
  if (op !== "revoke" && op !== "break") command.tokenHash = hashOf(parts);
  // A token is unique to its grant: finding it in the record means that this grant is already ours.
  if (op === "acquire") command.provenTokenHash = command.tokenHash;
  if (op === "acquire" && context.quotaExhausted === true) command.quotaExhausted = true;
  if (op === "release" && request.next !== undefined) command.next = nextCommand(request.next, parts);
  if (context.approval !== undefined && context.approval !== null) command.approval = context.approval;
  if (idempotencyKey !== undefined) command.idempotency = markOf(request, idempotencyKey, parts);
  return command as unknown as LeaseCommand;
}

/** Its nonce is set by the decision: it is that of the release. */
function nextCommand({ request, context }: NextWaiter, { nonce, policy }: CommandParts): LeaseCommand {
  return commandOf(request, { token: request.token, nonce, policy, context });
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

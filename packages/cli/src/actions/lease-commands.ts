/** The commands that are one request on one lease: those of its holder, with the token, and those of an operator. */
import { type AppliedOutcome, given, type LeaseRequest, viewOf } from "solehold/internal";
import type { Invocation } from "../command.ts";
import { type Connection, keyOf, withLeases } from "../connection.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { appliedOrThrow } from "../format/errors.ts";
import { leaseDocument } from "../format/lease.ts";
import {
  durationOption,
  fenceOption,
  purposeOption,
  requiredDuration,
  requiredOption,
  tokenOption,
} from "../parse/option-values.ts";
import { loadApproval } from "./approvals/load-approvals.ts";

type OwnerRequest = Extract<LeaseRequest, { op: "renew" | "release" | "use" | "resume" | "handoff" }>;
type WithoutProof<Request> = Request extends OwnerRequest ? Omit<Request, "key" | "holder" | "token"> : never;
/** The answer for people. */
type Say = (name: string, outcome: AppliedOutcome) => string;

export async function renew(invocation: Invocation): Promise<number> {
  const request = { op: "renew", ...given({ ttlMs: durationOption(invocation, "ttl", 1) }) } as const;
  const say: Say = (name, { validForMs }) => `${name} is renewed for ${shortDuration(validForMs)}`;
  return await asHolder(invocation, request, say);
}

export async function release(invocation: Invocation): Promise<number> {
  return await asHolder(invocation, { op: "release" }, (name) => `${name} is released`);
}

export async function use(invocation: Invocation): Promise<number> {
  const purpose = purposeOption(invocation) ?? "Operation";
  return await asHolder(invocation, { op: "use", purpose }, (name, { validForMs }) => {
    return `${name} may be used for ${purpose}, for another ${shortDuration(validForMs)}`;
  });
}

export async function resume(invocation: Invocation): Promise<number> {
  return await asHolder(invocation, { op: "resume" }, (name) => `${name} may be used again`);
}

export async function handoff(invocation: Invocation): Promise<number> {
  const fix = "name the holder that may take it, as in --to replica-2";
  const successor = requiredOption(invocation, "to", fix);
  const withinMs = requiredDuration(invocation, "within", 1);
  const say: Say = (name) => `${name} is reserved for ${successor}, for ${shortDuration(withinMs)}`;
  return await asHolder(invocation, { op: "handoff", successor, withinMs }, say);
}

export async function revoke(invocation: Invocation): Promise<number> {
  return await asOperator(invocation, { op: "revoke" }, (name, { validForMs, decision }) => {
    const until = `${decision.lease.holder} may still believe in it for ${shortDuration(validForMs)}`;
    return validForMs > 0 ? `${name} is revoked; ${until}` : `${name} is revoked`;
  });
}

export async function breakLease(invocation: Invocation): Promise<number> {
  const periodMs = requiredDuration(invocation, "period", 0);
  return await asOperator(invocation, { op: "break", periodMs }, (name, { decision }) => {
    const promised = `when what ${decision.lease.holder} was promised ends`;
    return `${name} ends within ${shortDuration(periodMs)}, or ${promised}`;
  });
}

/** With proof of the grant: a denial means that the lease is over for its holder. */
async function asHolder(
  invocation: Invocation,
  request: WithoutProof<OwnerRequest>,
  say: Say,
): Promise<number> {
  const name = keyOf(invocation);
  const token = tokenOption(invocation);
  return await withLeases(invocation, "user", async (connection) => {
    const { tenant, holder } = connection;
    const proven = { ...request, key: { tenant, name }, holder, token };
    return await execute(invocation, connection, proven, "holder", say);
  });
}

/** Without proof, optionally for one grant only; a key may need approvals for it. */
async function asOperator(
  invocation: Invocation,
  action: { readonly op: "revoke" } | { readonly op: "break"; readonly periodMs: number },
  say: Say,
): Promise<number> {
  const name = keyOf(invocation);
  const grant = given({ generation: fenceOption(invocation) });
  return await withLeases(invocation, "user", async (connection) => {
    const target = { key: { tenant: connection.tenant, name }, ...grant };
    const ttl = action.op === "break" ? { ttlMs: action.periodMs } : {};
    const approval = await loadApproval(invocation, { action: action.op, ...target, ...ttl });
    return await execute(invocation, connection, { ...action, ...target, ...approval }, "operator", say);
  });
}

/** Prints the state that the command left the lease in. */
async function execute(
  invocation: Invocation,
  { executor }: Connection,
  request: LeaseRequest,
  asker: "holder" | "operator",
  say: Say,
): Promise<number> {
  const { name } = request.key;
  const applied = appliedOrThrow(await executor.execute(request), name, asker);
  const { decision, storeTimeMs } = applied;
  printAnswer(invocation, {
    document: () => leaseDocument(viewOf(decision.lease, storeTimeMs, executor.policy)),
    lines: () => [say(name, applied)],
  });
  return EXIT.ok;
}

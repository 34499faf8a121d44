/** What a holder does with its token: renew, release, use, resume, handoff. */
import { type LeaseRequest, viewOf } from "solehold";
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import type { AppliedOutcome } from "../executor.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { shortDuration } from "../format/duration.ts";
import { appliedOrThrow } from "../format/errors.ts";
import { leaseDocument } from "../format/lease.ts";
import {
  durationOption,
  given,
  purposeOption,
  requiredDuration,
  requiredOption,
  tokenOption,
} from "../parse/option-values.ts";

type OwnerRequest = Extract<LeaseRequest, { op: "renew" | "release" | "use" | "resume" | "handoff" }>;
type WithoutProof<Request> = Request extends OwnerRequest ? Omit<Request, "key" | "holder" | "token"> : never;

/** Sends the request with the proof of the grant; `say` is the answer for people. */
async function asHolder(
  invocation: Invocation,
  request: WithoutProof<OwnerRequest>,
  say: (name: string, outcome: AppliedOutcome) => string,
): Promise<number> {
  const name = keyOf(invocation);
  const token = tokenOption(invocation);
  return await withLeases(invocation, "user", async ({ executor, tenant, holder }) => {
    const outcome = await executor.execute({ ...request, key: { tenant, name }, holder, token });
    const applied = appliedOrThrow(outcome, name, "holder");
    const { decision, storeTimeMs } = applied;
    printAnswer(invocation, {
      document: () => leaseDocument(viewOf(decision.lease, storeTimeMs, executor.policy)),
      lines: () => [say(name, applied)],
    });
    return EXIT.ok;
  });
}

export async function renew(invocation: Invocation): Promise<number> {
  const ttl = given({ ttlMs: durationOption(invocation, "ttl", 1) });
  return await asHolder(
    invocation,
    { op: "renew", ...ttl },
    (name, { validForMs }) => `${name} is renewed for ${shortDuration(validForMs)}`,
  );
}

export async function release(invocation: Invocation): Promise<number> {
  return await asHolder(invocation, { op: "release" }, (name) => `${name} is released`);
}

export async function use(invocation: Invocation): Promise<number> {
  const purpose = purposeOption(invocation) ?? "Operation";
  return await asHolder(
    invocation,
    { op: "use", purpose },
    (name, { validForMs }) => `${name} may be used for ${purpose}, for another ${shortDuration(validForMs)}`,
  );
}

export async function resume(invocation: Invocation): Promise<number> {
  return await asHolder(invocation, { op: "resume" }, (name) => `${name} may be used again`);
}

export async function handoff(invocation: Invocation): Promise<number> {
  const fix = "name the holder that may take it, as in --to replica-2";
  const successor = requiredOption(invocation, "to", fix);
  const withinMs = requiredDuration(invocation, "within", 1);
  return await asHolder(
    invocation,
    { op: "handoff", successor, withinMs },
    (name) => `${name} is reserved for ${successor}, for ${shortDuration(withinMs)}`,
  );
}

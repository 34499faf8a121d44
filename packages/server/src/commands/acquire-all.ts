/**
 * Several leases in one request: all of them, or none. One after the other in the order of names, so of two callers who
 * want the same names one is granted the first of them, and the other holds up nobody.
 *
 * Not promised: that a name is free when the answer "none" arrives, if the store did not answer its release, or if its
 * grant is that of an earlier request with the same token or idempotency key. Then it ends by its ttl.
 */
import type { CommandOutcome, ReleaseRequest, WireAnswer } from "solehold/internal";

/** A command that was decided, and its answer. */
export interface Decided {
  readonly outcome: CommandOutcome;
  readonly answer: WireAnswer;
}

export interface AcquireAllSteps {
  acquire(name: string): Promise<Decided>;
  release(request: ReleaseRequest): Promise<unknown>;
}

export async function acquireAll(
  names: readonly string[],
  { acquire, release }: AcquireAllSteps,
): Promise<WireAnswer> {
  const granted = new Map<string, Decided>();
  const none = async (): Promise<void> => {
    const releases = [...granted.values()].flatMap(({ outcome }) => releaseOf(outcome));
    await Promise.allSettled(releases.map(release));
  };
  for (const name of [...names].sort()) {
    const decided = await acquire(name).catch(async (error: unknown) => {
      await none();
      throw error;
    });
    const { answer } = decided;
    if (decided.outcome.kind !== "applied") {
      await none();
      return { ...answer, body: { ...(answer.body as object), name } };
    }
    granted.set(name, decided);
  }
  return { status: 200, body: { grants: names.map((name) => granted.get(name)?.answer.body) } };
}

/** Of what this request was granted, as long as no repeat of it found the grant: that writes the record anew. */
function releaseOf(outcome: CommandOutcome): readonly ReleaseRequest[] {
  if (outcome.kind !== "applied") return [];
  const { token, decision } = outcome;
  const { key, holder, nonce, renewals } = decision.lease;
  if (decision.replayed || renewals > 0) return [];
  return [{ op: "release", key, holder, token, onlyNonce: nonce }];
}

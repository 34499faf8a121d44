/**
 * Which writes took effect without an answer to their sender in time. If the key has moved on since, no sender
 * can find out: its call may end as unknown, or as refused, although the effect was there for a while. The
 * store's log knows when, so a history can be judged without guessing.
 *
 * An effect counts as lost only if some call can have caused it whose caller was not promised the contrary:
 * one that was answered "certainly not done" has no effects.
 */
import { askedKey, keyId } from "solehold/internal";
import type { Entry, SimConfig } from "../config.ts";
import { type CallRecord, isGrant, type LostEffect } from "../oracles/oracle.ts";
import type { SentWrite } from "../store/client.ts";
import type { AppliedWrite } from "../store/engine.ts";

/** No sender waits for less, however late its command is. */
const SHORTEST_PATIENCE_MS = 5;

/** An answer that takes longer than this may have come too late. */
function promptMsOf({ callTimeoutMs, commandTimeoutMs, ttlMs, clocks }: SimConfig): number {
  const fastestClock = clocks === "bounded" ? 1 : 3;
  return Math.min(SHORTEST_PATIENCE_MS, callTimeoutMs, commandTimeoutMs, ttlMs / 6) / 2 / fastestClock;
}

export class EffectLog {
  readonly #config: SimConfig;
  readonly #sent: SentWrite[] = [];
  /** By the nonce of the write. */
  readonly #effects = new Map<string, Omit<LostEffect, "process">>();

  constructor(config: SimConfig) {
    this.#config = config;
  }

  onSent(write: SentWrite): void {
    this.#sent.push(write);
  }

  onApplied(write: AppliedWrite, atMs: number): void {
    const op = effectOf(write);
    const { after, key } = write;
    if (op === null || after === null || key.name.startsWith("$")) return;
    const { nonce, generation, holder } = after;
    this.#effects.set(nonce, { keyId: keyId(key), op, generation, holder, atMs });
  }

  lost(calls: readonly CallRecord[]): readonly LostEffect[] {
    const { entry } = this.#config;
    const promptMs = promptMsOf(this.#config);
    const unanswered = calls.filter(({ endedMs, outcome }) => endedMs === null || isUnknown(outcome));
    const lost = new Map<string, LostEffect>();
    for (const sent of this.#sent) {
      const effect = this.#effects.get(sent.nonce);
      // A server that was answered in time may still not have been able to answer its client; and a process that was
      // answered may have died while it waited for its audit, or found that the audit could not be written.
      const isAnswered = entry === "library" && sent.answeredMs - sent.sentMs <= promptMs;
      const causes = isAnswered ? unanswered : calls;
      if (effect === undefined || !causes.some((call) => mayHaveCaused(call, effect, sent, entry))) continue;
      lost.set(sent.nonce, { ...effect, process: sent.process });
    }
    return [...lost.values()];
  }
}

function isUnknown(outcome: CallRecord["outcome"]): boolean {
  return outcome?.kind === "unsettled" && outcome.outcome === "unknown";
}

function mayHaveCaused(
  { request, outcome, startedMs, endedMs, process }: CallRecord,
  effect: Omit<LostEffect, "process">,
  sent: SentWrite,
  entry: Entry,
): boolean {
  if (!causes(request.op, effect.op, entry) || keyId(askedKey(request.key)) !== sent.askedId) return false;
  if ("holder" in request && request.holder !== effect.holder) return false;
  if (outcome?.kind === "unsettled" && outcome.outcome === "not-applied") return false;
  // A server goes on with what its client has given up, and may get a request twice.
  if (entry === "server") return startedMs <= sent.sentMs;
  const covers = startedMs <= sent.sentMs && sent.sentMs <= (endedMs ?? Number.POSITIVE_INFINITY);
  return covers && process === sent.process;
}

function causes(op: CallRecord["request"]["op"], effect: LostEffect["op"], entry: Entry): boolean {
  if (op === effect || (op === "handoff" && effect === "release")) return true;
  // What was granted to a client that does not want it any more is released by the server.
  return entry === "server" && op === "acquire" && effect === "release";
}

/** Which operation a write is the effect of, as far as it shows. */
function effectOf(write: AppliedWrite): LostEffect["op"] | null {
  const { before, after } = write;
  if (isGrant(write)) return "acquire";
  if (after?.state === "released" && before?.state !== "released") return "release";
  return after?.state === "revoked" && before?.state !== "revoked" ? "revoke" : null;
}

/**
 * Which writes took effect without their sender being told in time. If the key has moved on since, no sender
 * can find out: its call may end as unknown, or as refused, although the effect was there for a while. The
 * store's log knows when, so a history can be judged without guessing.
 *
 * An effect counts as lost only if some call can have caused it whose caller was not promised the contrary:
 * one that was told "certainly not done" has no effects.
 */
import { keyId } from "../../core/index.ts";
import type { SimConfig } from "../config.ts";
import { type CallRecord, isGrant, type LostEffect } from "../oracles/oracle.ts";
import type { SentWrite } from "../store/client.ts";
import type { AppliedWrite } from "../store/engine.ts";

/** No sender waits for less, however late its command is. */
const SHORTEST_PATIENCE_MS = 5;

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
    if (op === null || after === null) return;
    const { nonce, generation, holder } = after;
    this.#effects.set(nonce, { keyId: keyId(key), op, generation, holder, atMs });
  }

  lost(calls: readonly CallRecord[]): readonly LostEffect[] {
    // An answer that takes longer than this may have come too late.
    const { callTimeoutMs, commandTimeoutMs, ttlMs, clocks } = this.#config;
    const fastestClock = clocks === "bounded" ? 1 : 3;
    const promptMs =
      Math.min(SHORTEST_PATIENCE_MS, callTimeoutMs, commandTimeoutMs, ttlMs / 6) / 2 / fastestClock;
    const lost = new Map<string, LostEffect>();
    for (const sent of this.#sent) {
      const effect = this.#effects.get(sent.nonce);
      if (effect === undefined || sent.answeredMs - sent.sentMs <= promptMs) continue;
      if (calls.some((call) => mayHaveCaused(call, effect.op, sent)))
        lost.set(sent.nonce, { ...effect, process: sent.process });
    }
    return [...lost.values()];
  }
}

function mayHaveCaused(call: CallRecord, effect: LostEffect["op"], sent: SentWrite): boolean {
  const { op, key } = call.request;
  if ((op === "handoff" ? "release" : op) !== effect || keyId(key) !== sent.keyId) return false;
  if (call.outcome?.kind === "unsettled" && call.outcome.outcome === "not-applied") return false;
  const covers = call.startedMs <= sent.sentMs && sent.sentMs <= (call.endedMs ?? Number.POSITIVE_INFINITY);
  return covers && call.process === sent.process;
}

/** Which operation a write is the effect of, as far as it shows. */
function effectOf(write: AppliedWrite): LostEffect["op"] | null {
  const { before, after } = write;
  if (isGrant(write)) return "acquire";
  if (after?.state === "released" && before?.state !== "released") return "release";
  return after?.state === "revoked" && before?.state !== "revoked" ? "revoke" : null;
}

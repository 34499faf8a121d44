/**
 * Which of a name's slots an acquire asks for. It reads all of them in one call and asks `decide` about each; it grants
 * nothing itself: the chosen slot is then acquired like any lease, and may be taken by another meanwhile.
 *
 *   1. the slot that this very request was granted before, by its token or its idempotency key
 *   2. a free one, the first from a place that the token says: callers who come together try different slots
 *   3. none is free: the one that ends first, so that the denial says how long it takes at least
 */
import { type AcquireCommand, findMark, type LeaseKey, slotKeys } from "../core/index.ts";
import { readClocks } from "../env/index.ts";
import type { SnapshotSource } from "./cached-record.ts";
import type { ExecutorParts } from "./parts.ts";

export interface SlotChoice {
  readonly key: LeaseKey;
  readonly isFree: boolean;
}

interface Judged {
  readonly rank: "own" | "free" | "own name" | "taken";
  readonly endsMs: number;
}

const RANKS: readonly Judged["rank"][] = ["own", "free", "own name", "taken"];

/** `command`: the acquire as it would be sent to the first slot. Rejects with a StoreError. */
export async function chooseSlot(
  { cache, env, decide, policy }: ExecutorParts,
  command: AcquireCommand,
  slots: number,
  timeoutMs: number,
): Promise<SlotChoice> {
  const keys = slotKeys(command.key, slots);
  const sources = await Promise.all(keys.map((key) => cache.read(key, timeoutMs)));
  const reading = readClocks(env);
  const judged = sources.map((source, slot): Judged => {
    const asked = { ...command, key: keys[slot] ?? command.key };
    const now = cache.instant(source, reading);
    const snapshot = cache.snapshot(asked, source, now, reading.monotonicMs);
    return judge(asked, source, decide(asked, snapshot, now, policy));
  });
  const first = startOf(command.idempotency?.keyHash ?? command.tokenHash, slots);
  const order = keys.map((_, step) => (first + step) % slots);
  let best = order[0] ?? 0;
  for (const slot of order) if (isBetter(judged[slot], judged[best])) best = slot;
  return { key: keys[best] ?? command.key, isFree: judged[best]?.rank !== "taken" };
}

function judge(
  command: AcquireCommand,
  { record }: SnapshotSource,
  { bundle, decision }: ReturnType<ExecutorParts["decide"]>,
): Judged {
  const { idempotency } = command;
  const isRepeat =
    record !== null && idempotency !== undefined && findMark(record, idempotency.keyHash) !== null;
  if (isRepeat || bundle.tokenMatch) return { rank: "own", endsMs: 0 };
  if (decision.kind === "granted") {
    // Some policies let a holder take its lease again by its name alone. A free slot is what was asked for.
    const isHeld = bundle.ownerMatch && !bundle.leaseExpired && record?.state === "held";
    return { rank: isHeld ? "own name" : "free", endsMs: 0 };
  }
  // A denial without an end is not about this slot's holder (the tenant has no room, say): it is the one to answer with. A
  // record that cannot be read is the last.
  const endsMs = decision.kind === "denied" ? (decision.heldUntilMs ?? 0) : Number.POSITIVE_INFINITY;
  return { rank: "taken", endsMs };
}

function isBetter(one: Judged | undefined, other: Judged | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const [rank, than] = [RANKS.indexOf(one.rank), RANKS.indexOf(other.rank)];
  return rank < than || (rank === than && one.endsMs < other.endsMs);
}

/** The same for every repeat of a request. */
function startOf(hash: string, slots: number): number {
  return Buffer.from(hash, "base64url").readUInt32BE(0) % slots;
}

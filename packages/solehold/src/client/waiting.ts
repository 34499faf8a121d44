/**
 * Acquiring with patience: attempt after attempt until it is granted, hopeless, aborted or out of time.
 * Over a store this process keeps its own line; over a server see remote/servers-line.ts.
 */
import type { LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { AppliedOutcome, CommandOutcome, WaitInLine } from "../manager/index.ts";
import { type FailedOutcome, failureOf, heldForMs, isWorthWaiting, timeoutOf } from "./failures.ts";
import type { Place, WaitingRooms } from "./waiting-room.ts";

export interface Patience {
  readonly key: LeaseKey;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  attempt(wait?: WaitInLine): Promise<CommandOutcome>;
}

export const RETRY_UNAVAILABLE_MS = 200;

/** Whether an acquire that was not confirmed may have been carried out. */
export function mayBeGranted(outcome: CommandOutcome): boolean {
  return outcome.kind === "unsettled" && outcome.outcome === "unknown";
}

export async function waitInTurn(env: Env, rooms: WaitingRooms, patience: Patience): Promise<AppliedOutcome> {
  const { key, waitMs, signal } = patience;
  const place = rooms.enter(key);
  const startedMs = env.monotonicMs();
  const leftMs = (): number => waitMs - (env.monotonicMs() - startedMs);
  try {
    let last: FailedOutcome | null = null;
    let overdueLooks = 0;
    // Most who come are served at once and need no news. In a crowd hardly anybody is.
    if (rooms.isCrowded(key)) await rooms.awaitNews(key);
    for (let looks = 0; ; looks += 1) {
      const newsBefore = rooms.news(key);
      if (rooms.isHead(key, place)) {
        const outcome = await patience.attempt();
        if (outcome.kind !== "unsettled") rooms.tried(key, outcome.kind === "applied" ? "won" : "lost");
        if (outcome.kind === "applied") return outcome;
        if (!isWorthWaiting(outcome)) throw failureOf(key, outcome);
        last = outcome;
        overdueLooks = heldForMs(outcome) === 0 ? overdueLooks + 1 : 0;
      }
      signal?.throwIfAborted();
      if (leftMs() <= 0) throw timeoutOf(key, last, waitMs);
      const pauseMs = await pauseBefore(rooms, key, place, { last, looks, overdueLooks, newsBefore });
      await place.wait(env, Math.min(pauseMs, Math.max(0, leftMs())), signal);
      signal?.throwIfAborted();
    }
  } finally {
    rooms.leave(key, place);
  }
}

interface Experience {
  readonly last: FailedOutcome | null;
  readonly looks: number;
  readonly overdueLooks: number;
  /** Whether changes were announced already when it looked last. */
  readonly newsBefore: "yes" | "no";
}

async function pauseBefore(
  rooms: WaitingRooms,
  key: LeaseKey,
  place: Place,
  { last, looks, overdueLooks, newsBefore }: Experience,
): Promise<number> {
  // Only the head looks; the others are woken when it leaves.
  if (!rooms.isHead(key, place)) return Number.MAX_SAFE_INTEGER;
  if (last?.kind === "unsettled") return RETRY_UNAVAILABLE_MS;
  await rooms.awaitNews(key);
  const news = rooms.news(key);
  // What changed between the last look and the first news was announced to nobody.
  if (news !== newsBefore) return 0;
  return rooms.lookAgainMs({ heldForMs: last === null ? null : heldForMs(last), looks, overdueLooks, news });
}

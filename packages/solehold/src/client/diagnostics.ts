/**
 * What happens to leases in this process, for subscribers of `node:diagnostics_channel`. Each event has a channel of
 * its own, `solehold:attempt`, `solehold:granted`, ... Without a subscriber nothing is built and nothing is measured.
 *
 * Durations are in milliseconds. Events are for people and measurements: nothing in the library depends on them, and a
 * subscriber that throws is Node's to report.
 */
import type { Channel } from "node:diagnostics_channel";
import type { LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { WaitingDetails } from "../executor/index.ts";
import { builtin } from "../support/builtin.ts";
import type { LossReason } from "./errors.ts";
import type { Lease } from "./lease.ts";
import type { ReleaseResult } from "./loss.ts";

interface AttemptEvent {
  /** The same for all events of one `acquire`; null for what was adopted. */
  readonly attempt: number | null;
  readonly key: LeaseKey;
  readonly holder: string;
}

interface HoldEvent {
  /** The handle itself: the same object in all events of one grant. Do not keep it longer than the event. */
  readonly lease: Lease;
}

export interface LeaseEvents {
  /** Somebody asks for a lease, and waits for it for so long at most. */
  readonly attempt: AttemptEvent & { readonly waitMs: number };
  /** It has to wait; again when its position changes. */
  readonly waiting: AttemptEvent & { readonly for: WaitingDetails };
  readonly granted: AttemptEvent & HoldEvent & { readonly durationMs: number };
  /** The attempt ended without a lease: somebody else has it, the store did not answer, the caller gave up, ... */
  readonly refused: AttemptEvent & { readonly durationMs: number; readonly error: unknown };
  readonly renewed: HoldEvent & { readonly durationMs: number; readonly remainingMs: number };
  /** A renewal failed; the lease is still held for so long. */
  readonly jeopardy: HoldEvent & { readonly remainingMs: number };
  /** It is over, and not by the holder's own will. */
  readonly lost: HoldEvent & { readonly reason: LossReason; readonly heldMs: number };
  /** The holder released it, and the store's answer took so long. */
  readonly released: HoldEvent & {
    readonly heldMs: number;
    readonly durationMs: number;
    readonly result: ReleaseResult;
  };
}

export type LeaseEventName = keyof LeaseEvents;

export const LEASE_EVENTS: readonly LeaseEventName[] = [
  ...(["attempt", "waiting", "granted", "refused"] as const),
  ...(["renewed", "jeopardy", "lost", "released"] as const),
];

const CHANNELS: { [name in LeaseEventName]?: Channel } = {};
const diagnostics = builtin("node:diagnostics_channel");
if (diagnostics !== undefined)
  for (const name of LEASE_EVENTS) CHANNELS[name] = diagnostics.channel(`solehold:${name}`);

/** Whether anybody wants to know: ask before anything is built for it. */
export function isWatched(name: LeaseEventName): boolean {
  return CHANNELS[name]?.hasSubscribers === true;
}

export function publish<Name extends LeaseEventName>(name: Name, event: LeaseEvents[Name]): void {
  CHANNELS[name]?.publish(event);
}

/** Returns how to end it. */
export function subscribe<Name extends LeaseEventName>(
  name: Name,
  listener: (event: LeaseEvents[Name]) => void,
): () => void {
  const onMessage = (message: unknown): void => listener(message as LeaseEvents[Name]);
  CHANNELS[name]?.subscribe(onMessage);
  return () => void CHANNELS[name]?.unsubscribe(onMessage);
}

let lastAttempt = 0;

interface Asked {
  readonly key: LeaseKey;
  readonly holder: string;
  /** Null for a lease that is adopted: nobody competes for it. */
  readonly waitMs: number | null;
}

type Acquire = (onWaiting: ((details: WaitingDetails) => void) | null) => Promise<Lease>;

/** Publishes an attempt, and how it ended. */
export function observed(env: Env, asked: Asked, acquire: Acquire): Promise<Lease> {
  const isAnyWatched =
    isWatched("attempt") || isWatched("waiting") || isWatched("granted") || isWatched("refused");
  return isAnyWatched ? observe(env, asked, acquire) : acquire(null);
}

async function observe(env: Env, { key, holder, waitMs }: Asked, acquire: Acquire): Promise<Lease> {
  lastAttempt += 1;
  const about = { attempt: waitMs === null ? null : lastAttempt, key, holder };
  const startedMs = env.monotonicMs();
  if (waitMs !== null) publish("attempt", { ...about, waitMs });
  const onWaiting = (details: WaitingDetails): void => publish("waiting", { ...about, for: details });
  try {
    const lease = await acquire(isWatched("waiting") ? onWaiting : null);
    publish("granted", { ...about, key: lease.key, lease, durationMs: env.monotonicMs() - startedMs });
    return lease;
  } catch (error) {
    publish("refused", { ...about, error, durationMs: env.monotonicMs() - startedMs });
    throw error;
  }
}

/** One acquire that waits for its turn: who asked, until when it waits, and how its wait ended. */
import type { Env, Timer } from "../env/index.ts";
import type {
  AcquireRequest,
  CallContext,
  CommandOutcome,
  Recipient,
  WaitingDetails,
} from "../executor/index.ts";
import { mayBeGranted } from "./outcomes.ts";

/** An acquire whose token is known here, so that its grant can be released whatever the answer was. */
export type WaitRequest = AcquireRequest & { readonly token: string };

/** A grant, or what may be one, and who is to learn of it. */
export interface GrantRecipient {
  readonly request: WaitRequest;
  readonly context: CallContext;
  readonly recipient: Recipient;
  /** How the caller could find the grant by repeating the request: it chose the token, or a key. */
  readonly repeatable: "no" | "by token" | "by key";
}

export interface WaiterOptions extends GrantRecipient {
  readonly env: Env;
  readonly waitMs: number;
  readonly onWaiting: ((details: WaitingDetails) => void) | undefined;
  readonly resolve: (outcome: CommandOutcome) => void;
}

/** "overdue": its time ran out while its own attempt was under way. "left": it is answered, or its caller has gone. */
export type WaiterPhase = "waiting" | "trying" | "overdue" | "left";

/** However little of the wait is left, an attempt gets this much time. */
const SHORTEST_ATTEMPT_MS = 1_000;
const LONGEST_ATTEMPT_MS = 10_000;

export class Waiter implements GrantRecipient {
  readonly request: WaitRequest;
  readonly context: CallContext;
  readonly recipient: Recipient;
  readonly repeatable: GrantRecipient["repeatable"];
  /** On the monotonic clock. */
  readonly sinceMs: number;
  readonly untilMs: number;
  phase: WaiterPhase = "waiting";
  /** Its last attempt that may have been granted without confirmation; null when there is none. */
  unconfirmed: CommandOutcome | null = null;
  readonly #options: WaiterOptions;
  #timer: Timer | null = null;
  #stopListening: (() => void) | null = null;
  #shownPosition: number | null = null;

  constructor(options: WaiterOptions) {
    const { env, request, context, recipient, repeatable, waitMs } = options;
    this.request = request;
    this.context = context;
    this.recipient = recipient;
    this.repeatable = repeatable;
    this.sinceMs = env.monotonicMs();
    this.untilMs = this.sinceMs + waitMs;
    this.#options = options;
  }

  get priority(): number {
    return this.request.priority ?? 0;
  }

  get wantsDetails(): boolean {
    return this.#options.onWaiting !== undefined;
  }

  get isArmed(): boolean {
    return this.#stopListening !== null;
  }

  /** It has to wait: from now on its time can run out, and its caller can go. */
  arm(onTimeout: () => void, onGone: () => void): void {
    const { env } = this.#options;
    this.#stopListening = this.recipient.onGone(onGone);
    if (Number.isFinite(this.untilMs))
      this.#timer = env.timer(this.untilMs - env.monotonicMs(), onTimeout, { keepAlive: true });
  }

  /** The last thing that happens to it. */
  leave(outcome: CommandOutcome): void {
    this.phase = "left";
    this.#timer?.cancel();
    this.#stopListening?.();
    this.#options.resolve(outcome);
  }

  /** For a caller that wants to know where it stands. */
  show(position: number, details: Omit<WaitingDetails, "position">): void {
    if (position === this.#shownPosition) return;
    this.#shownPosition = position;
    this.#options.onWaiting?.({ ...details, position });
  }

  remember(outcome: CommandOutcome): void {
    if (mayBeGranted(outcome)) this.unconfirmed = outcome;
    else if (outcome.kind !== "unsettled") this.unconfirmed = null;
  }

  /** With how long it has waited. */
  contextAt(nowMs: number): CallContext {
    const waitedMs = Math.floor(nowMs - this.sinceMs);
    return waitedMs > 0 ? { ...this.context, waitedMs } : this.context;
  }

  /** Its next attempt may take what is left of the wait. */
  timed(nowMs: number): WaitRequest {
    const { timeoutMs = LONGEST_ATTEMPT_MS } = this.request;
    const leftMs = Math.min(this.untilMs - nowMs, timeoutMs);
    return { ...this.request, timeoutMs: Math.ceil(Math.max(SHORTEST_ATTEMPT_MS, leftMs)) };
  }
}

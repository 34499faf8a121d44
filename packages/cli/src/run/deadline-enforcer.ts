/**
 * The supervisor's timer: from deadlines to signals. It knows nothing of processes, stores or leases; it gets
 * deadlines and sends signals in time.
 *
 * Promised: SIGKILL is sent no later than the margin before the newest deadline, SIGTERM a grace before
 * that; once it is stopping, no later deadline calls that off.
 * Not promised: anything while the supervisor itself is stopped.
 */
import type { Env, Timer } from "solehold/internal";
import { type Deadline, leftUntil } from "./deadline.ts";
import type { StopPlan } from "./plan.ts";

/**
 * Why a group was stopped: no fresh deadline came in time, the lease was lost, the holder died; or the
 * command itself has ended and processes of its group survived it.
 */
export type StopCause = "deadline" | "lost" | "orphaned" | "survivors";

export interface DeadlineEnforcerOptions {
  readonly env: Env;
  readonly plan: StopPlan;
  readonly deadline: Deadline;
  readonly kill: (signal: "SIGTERM" | "SIGKILL") => void;
  readonly onStopping: (cause: StopCause) => void;
}

/** How often it reads the wall clock: a machine that slept wakes with its monotonic timers far behind. */
const CHECK_EVERY_MS = 100;

export class DeadlineEnforcer {
  readonly #options: DeadlineEnforcerOptions;
  #deadline: Deadline;
  #stoppedBecause: StopCause | null = null;
  /** On the monotonic clock, once SIGTERM was sent. */
  #killAtMs = Number.POSITIVE_INFINITY;
  #timer: Timer | null = null;
  #finished = false;

  constructor(options: DeadlineEnforcerOptions) {
    this.#options = options;
    this.#deadline = options.deadline;
    this.#check();
  }

  /** Null while the command may work. */
  get stoppedBecause(): StopCause | null {
    return this.#stoppedBecause;
  }

  /** The lease was renewed. */
  extend(deadline: Deadline): void {
    if (this.#stoppedBecause === null) this.#deadline = deadline;
  }

  /** "grace": SIGTERM now, SIGKILL after the grace or at the deadline. "now": another may have it already. */
  stop(cause: StopCause, urgency: "grace" | "now"): void {
    if (this.#finished || this.#options.plan.onLoss === "ignore") return;
    if (urgency === "now") this.#killAtMs = Number.NEGATIVE_INFINITY;
    this.#beginStopping(cause);
    this.#check();
  }

  /** Nothing is left of the command. From here on no signal is sent: the group's number may be another's. */
  finish(): void {
    this.#finished = true;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #check(): void {
    const { env, plan, kill } = this.#options;
    this.#timer?.cancel();
    if (plan.onLoss === "ignore") return;
    let leftMs = this.#leftMs();
    if (this.#stoppedBecause === null && leftMs <= plan.graceMs) {
      this.#beginStopping("deadline");
      leftMs = this.#leftMs();
    }
    if (leftMs <= 0) kill("SIGKILL");
    const untilNextMs = this.#stoppedBecause === null ? leftMs - plan.graceMs : leftMs;
    const inMs = leftMs <= 0 ? CHECK_EVERY_MS : Math.min(CHECK_EVERY_MS, untilNextMs);
    this.#timer = env.timer(inMs, () => this.#check(), { keepAlive: true });
  }

  #beginStopping(cause: StopCause): void {
    if (this.#stoppedBecause !== null) return;
    const { env, plan, kill, onStopping } = this.#options;
    this.#stoppedBecause = cause;
    this.#killAtMs = Math.min(this.#killAtMs, env.monotonicMs() + plan.graceMs);
    if (this.#leftMs() > 0) kill("SIGTERM");
    onStopping(cause);
  }

  /** Until SIGKILL is due. */
  #leftMs(): number {
    const { env, plan } = this.#options;
    const byDeadline = leftUntil(this.#deadline, env) - plan.marginMs;
    return Math.min(byDeadline, this.#killAtMs - env.monotonicMs());
  }
}

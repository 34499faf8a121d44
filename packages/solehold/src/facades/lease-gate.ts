/**
 * The gate in front of the steps of a work order: a step runs only under a lease that is valid, of the
 * right purpose and token, at the moment the step starts. Without one nothing of the step happens.
 *
 * After a takeover the last holder's work is unfinished: no step runs until the new holder has said that
 * it rebuilt its view from persisted state.
 */
import {
  isStillValid,
  type LeaseKey,
  type LeaseServiceCode,
  type Purpose,
  type Reason,
  recordFence,
  validityFrom,
} from "../core/index.ts";
import { type Env, readClocks, realEnv } from "../env/index.ts";
import type { CallContext, CommandOutcome, LeaseExecutor } from "../executor/index.ts";
import { serviceCodeOf } from "../layers/service-codes.ts";

export interface StepPermit {
  readonly key: LeaseKey;
  readonly holder: string;
  readonly token: string;
  readonly purpose: Purpose;
}

export type StepResult<Result> =
  | { readonly ran: true; readonly result: Result; readonly fence: bigint }
  | { readonly ran: false; readonly reason: Reason; readonly code: LeaseServiceCode };

export interface LeaseGateOptions {
  /** What decides: an executor, or a service with its audit. */
  readonly service: LeaseExecutor;
  /** The clocks of this process. Default: the real ones. */
  readonly env?: Env;
}

export class LeaseGate {
  readonly #service: LeaseExecutor;
  readonly #env: Env;

  constructor({ service, env = realEnv }: LeaseGateOptions) {
    this.#service = service;
    this.#env = env;
  }

  /** Runs the step, given the fence to write with, or says why it did not. The step's own error passes through. */
  async runStep<Result>(
    permit: StepPermit,
    step: (fence: bigint) => Result | Promise<Result>,
    context: CallContext = {},
  ): Promise<StepResult<Result>> {
    const outcome = await this.#service.execute({ op: "use", ...permit }, context);
    if (outcome.kind !== "applied") return { ran: false, ...refusalOf(outcome) };
    // The answer may have been long on its way: what counts is the moment at which the step starts.
    if (!this.#isValidNow(outcome)) return { ran: false, reason: "LEASE_EXPIRED", code: "LS_STALE_USE" };
    const fence = recordFence(outcome.decision.lease);
    return { ran: true, result: await step(fence), fence };
  }

  /** The caller has resumed from persisted state: steps may run again. */
  async resumed(permit: Omit<StepPermit, "purpose">, context: CallContext = {}): Promise<LeaseServiceCode> {
    const { key, holder, token } = permit;
    const outcome = await this.#service.execute({ op: "resume", key, holder, token }, context);
    return serviceCodeOf("resume", outcome);
  }

  #isValidNow(outcome: Extract<CommandOutcome, { kind: "applied" }>): boolean {
    const validity = validityFrom(outcome.believedFrom, outcome.validForMs, this.#service.drift);
    return isStillValid(validity, readClocks(this.#env));
  }
}

function refusalOf(outcome: CommandOutcome): { readonly reason: Reason; readonly code: LeaseServiceCode } {
  const reason = outcome.kind === "unsettled" ? "INTERNAL_PIPELINE_ERROR" : outcome.decision.reason;
  return { reason, code: serviceCodeOf("use", outcome) };
}

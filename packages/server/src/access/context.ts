/** What both ways in, HTTP and streams, need: to let requests in, to bound them and to account for them. */
import { encodeProblem, type ProblemBody, type WireAnswer } from "solehold/internal";
import { problemOf } from "../protocol/problem.ts";
import type { FailureLog } from "../telemetry/failure-log.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Meters } from "../telemetry/metered-request.ts";
import type { AccessAudit } from "./access-audit.ts";
import type { Authenticator } from "./authenticator.ts";
import type { Call } from "./call.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { SharedLimits } from "./shares.ts";

export interface ServerContext extends Meters {
  readonly authenticator: Authenticator;
  readonly limiter: RateLimiter;
  readonly accessAudit: AccessAudit;
  readonly limits: SharedLimits;
  readonly behindProxy: "yes" | "no";
  readonly log: Logger;
  readonly failures: FailureLog;
  /** Nothing new is taken. */
  readonly isDraining: () => boolean;
}

/** The answer to a call that ended early: audited if access was refused, logged if something failed. Never rejects. */
export async function answerToError(
  { accessAudit, failures }: Pick<ServerContext, "accessAudit" | "failures">,
  thrown: unknown,
  call: Call,
  asProblem = problemOf,
): Promise<WireAnswer<ProblemBody>> {
  const error = await accessAudit.refused(thrown, call).then(
    () => thrown,
    (unaudited: unknown) => unaudited,
  );
  const answer = encodeProblem(asProblem(error), call.traceId);
  if (answer.status >= 500) failures.failed(error, call.traceId);
  return answer;
}

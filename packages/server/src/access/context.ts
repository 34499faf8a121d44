/** What both ways in, HTTP and streams, need: to let requests in, to bound them and to account for them. */
import type { Env, RandomIds } from "solehold/internal";
import type { FailureLog } from "../telemetry/failure-log.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AccessAudit } from "./access-audit.ts";
import type { Authenticator } from "./authenticator.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { SharedLimits } from "./shares.ts";

export interface ServerContext {
  readonly env: Env;
  readonly traces: RandomIds;
  readonly authenticator: Authenticator;
  readonly limiter: RateLimiter;
  readonly accessAudit: AccessAudit;
  readonly limits: SharedLimits;
  readonly behindProxy: "yes" | "no";
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly failures: FailureLog;
  /** Nothing new is taken. */
  readonly isDraining: () => boolean;
}

/** A lease service in memory for a test: its clock is set by hand, and every grant can be used, renewed and revoked. */

import { type AuditEntry, MemoryAuditTrail } from "../../src/audit/index.ts";
import {
  type LeaseOp,
  type LeaseServiceCode,
  type Purpose,
  type Reason,
  recordFence,
} from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { type CommandOutcome, MemoryExecutor } from "../../src/executor/index.ts";
import { LeaseService, serviceCodeOf } from "../../src/layers/index.ts";

export const KEY = { tenant: "default", name: "lease-1" };
export const SECOND_MS = 1_000;

export function serviceWorld(
  options: { readonly maxLiveLeases?: number; readonly rememberedTenants?: number } = {},
) {
  const env = new ManualEnv();
  const executor = new MemoryExecutor({ env, policy: { generations: "count" } });
  const audit = new MemoryAuditTrail({ capacity: 10_000 });
  const service = new LeaseService({ executor, audit, env, ...options });
  const grant = async (purpose: Purpose, ttlSeconds: number, name = KEY.name, holder = "holder") => {
    const key = { tenant: "default", name };
    const outcome = await service.execute(
      { op: "acquire", key, holder, purpose, ttlMs: ttlSeconds * SECOND_MS },
      { traceId: "t-grant" },
    );
    if (outcome.kind !== "applied") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    const { token } = outcome;
    return {
      use: async (as: Purpose) =>
        seen(
          await service.execute({ op: "use", key, holder, token, purpose: as }, { traceId: "t-use" }),
          "use",
        ).code,
      renew: async () =>
        seen(
          await service.execute(
            { op: "renew", key, holder, token, ttlMs: ttlSeconds * SECOND_MS },
            { traceId: "t-renew" },
          ),
          "renew",
        ).code,
      revoke: async () =>
        seen(await service.execute({ op: "revoke", key }, { traceId: "t-revoke" }), "revoke").code,
      token,
    };
  };
  const trail = async (): Promise<readonly AuditEntry[]> => await audit.query({ limit: 10_000 });
  return { env, service, audit, grant, trail };
}

/** How a caller sees an outcome. */
export function seen(
  outcome: CommandOutcome,
  op: LeaseOp = "acquire",
): {
  readonly allowed: boolean;
  readonly reason: Reason;
  readonly code: LeaseServiceCode;
  readonly fence: bigint | null;
} {
  const reason = outcome.kind === "unsettled" ? "INTERNAL_PIPELINE_ERROR" : outcome.decision.reason;
  const fence = outcome.kind === "applied" ? recordFence(outcome.decision.lease) : null;
  return { allowed: outcome.kind === "applied", reason, code: serviceCodeOf(op, outcome), fence };
}

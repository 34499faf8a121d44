/** A lease service in memory for a test: its clock is set by hand, and every grant can be used, renewed and revoked. */

import { type AuditEntry, MemoryAuditTrail } from "../../src/audit/index.ts";
import type { Purpose } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { MemoryLeaseManager } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";

export const KEY = { tenant: "default", name: "lease-1" };
export const SECOND_MS = 1_000;

export function serviceWorld(
  options: { readonly maxLiveLeases?: number; readonly rememberedTenants?: number } = {},
) {
  const env = new ManualEnv();
  const manager = new MemoryLeaseManager({ env, policy: { generations: "count" } });
  const audit = new MemoryAuditTrail({ capacity: 10_000 });
  const service = new LeaseService({ manager, audit, env, ...options });
  const grant = async (purpose: Purpose, ttlSeconds: number, name = KEY.name, holder = "holder") => {
    const key = { tenant: "default", name };
    const { outcome } = await service.grant(
      { key, holder, purpose, ttlMs: ttlSeconds * SECOND_MS },
      { traceId: "t-grant" },
    );
    if (outcome.kind !== "applied") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
    const { token } = outcome;
    return {
      use: async (as: Purpose) =>
        (await service.use({ key, holder, token, purpose: as }, { traceId: "t-use" })).entry.code,
      renew: async () =>
        (await service.renew({ key, holder, token, ttlMs: ttlSeconds * SECOND_MS }, { traceId: "t-renew" }))
          .entry.code,
      revoke: async () => (await service.revoke({ key }, { traceId: "t-revoke" })).entry.code,
      token,
    };
  };
  const trail = async (): Promise<readonly AuditEntry[]> => await audit.query({ limit: 10_000 });
  return { env, service, audit, grant, trail };
}

/** What decides: the store, the executor over it, the audit trail, and the service in front of both. */

import { type LeaseStore, openStore, StoreExecutor } from "solehold";
import { type Env, LeaseService } from "solehold/internal";
import { measuredStore, observedAudit } from "../telemetry/instrumented.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { DecisionFeed } from "../watch/decision-feed.ts";
import { type AuditLog, openAudit } from "./audit-log.ts";
import { ConfigError, type ServerConfig } from "./config.ts";
import { readApprovalPolicy } from "./files.ts";

export interface LeaseBackend {
  readonly service: LeaseService;
  readonly audit: AuditLog;
  readonly decisions: DecisionFeed;
  /** Of the approval rules in force. */
  readonly policyFingerprint: string;
  /** Makes the audit safe, then closes the store. Rejects when entries could not be saved. */
  close(): Promise<void>;
}

export async function openBackend(config: ServerConfig, env: Env, metrics: Metrics): Promise<LeaseBackend> {
  const store = await openStore(config.store, { env });
  try {
    const executor = executorOver(measuredStore(store, metrics, env), config, env);
    const audit = await openAudit(config);
    const decisions = new DecisionFeed();
    const trail = observedAudit(audit.trail, (event) => {
      metrics.audited(event);
      decisions.publish(event);
    });
    const { policy, fingerprint } = await readApprovalPolicy(config.policyFile);
    const service = new LeaseService({
      executor,
      audit: trail,
      env,
      maxLiveLeases: config.leasesPerTenant,
      ...(policy === null ? {} : { approvalPolicy: policy }),
    });
    return {
      ...{ service, audit, decisions, policyFingerprint: fingerprint },
      close: () => closeAll(service, audit, store),
    };
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

function executorOver(store: LeaseStore, config: ServerConfig, env: Env): StoreExecutor {
  const { minTtlMs, maxTtlMs, defaultTtlMs, terms } = config;
  try {
    return new StoreExecutor({ store, env, policy: { minTtlMs, maxTtlMs, defaultTtlMs, terms } });
  } catch (cause) {
    if (cause instanceof RangeError) throw new ConfigError(cause.message, { cause });
    throw cause;
  }
}

/** Every part is closed whatever becomes of the others. */
async function closeAll(service: LeaseService, audit: AuditLog, store: LeaseStore): Promise<void> {
  const ended = [
    await settled(service.close()),
    await settled(audit.trail.close()),
    await settled(store.close()),
  ];
  const failure = ended.find(({ status }) => status === "rejected");
  if (failure?.status === "rejected") throw failure.reason;
}

async function settled(step: Promise<void>): Promise<PromiseSettledResult<void>> {
  const [result] = await Promise.allSettled([step]);
  return result;
}

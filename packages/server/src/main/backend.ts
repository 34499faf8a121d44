/** What decides: the store, the executor over it, the audit trail, and the service in front of both. */

import { type LeaseStore, openStore, StoreExecutor } from "solehold";
import { type ApprovalRules, type AuditEvent, type Env, LeaseService } from "solehold/internal";
import { measuredStore, observedAudit } from "../telemetry/instrumented.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { DecisionFeed } from "../watch/decision-feed.ts";
import { FanOut } from "../watch/fan-out.ts";
import { type AuditLog, openAudit } from "./audit-log.ts";
import { AuditShipping } from "./audit-shipping.ts";
import { ConfigError, type ServerConfig } from "./config.ts";
import { readApprovalPolicy } from "./files.ts";

export interface LeaseBackend {
  readonly service: LeaseService;
  readonly audit: AuditLog;
  readonly decisions: DecisionFeed;
  /** Entries that were not sent on yet. */
  unshipped(): number;
  /** Of the approval rules in force. */
  policyFingerprint(): string;
  /** Reads the approval rules again, and returns how to put them in force. Rejects with a ConfigError. */
  readPolicy(): Promise<() => void>;
  /** Makes the audit safe, `lastEntry` included, then closes the store. Rejects when entries could not be saved. */
  close(lastEntry: () => Promise<void>): Promise<void>;
}

export async function openBackend(
  config: ServerConfig,
  { env, log, metrics }: { readonly env: Env; readonly log: Logger; readonly metrics: Metrics },
): Promise<LeaseBackend> {
  const store = await openStore(config.store, { env });
  try {
    const executor = executorOver(measuredStore(store, metrics, env), config, env);
    const audit = await openAudit(config);
    const decisions = new FanOut<AuditEvent>(env);
    const trail = observedAudit(audit.trail, (event) => {
      metrics.audited(event);
      decisions.publish(event.tenant, event);
    });
    const { auditShip: target, dataDir } = config;
    const cursorFile = config.audit === "memory" ? null : `${dataDir}/audit-shipped.json`;
    const shipping =
      target === "" ? null : await AuditShipping.start({ env, log, trail, target, cursorFile });
    let loaded = await readApprovalPolicy(config.policyFile);
    const rules: ApprovalRules = {
      ruleFor: (tenant, name) => loaded.policy?.ruleFor(tenant, name) ?? null,
    };
    const service = new LeaseService({
      executor,
      audit: trail,
      env,
      maxLiveLeases: config.leasesPerTenant,
      ...(loaded.policy === null ? {} : { approvalPolicy: rules }),
    });
    return {
      ...{ service, audit, decisions },
      unshipped: () => shipping?.unsent ?? 0,
      policyFingerprint: () => loaded.fingerprint,
      readPolicy: async () => {
        const read = await readApprovalPolicy(config.policyFile);
        return () => {
          loaded = read;
        };
      },
      close: (last) => closeAll(service, last, shipping, audit, store),
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
async function closeAll(
  service: LeaseService,
  lastEntry: () => Promise<void>,
  shipping: AuditShipping | null,
  audit: AuditLog,
  store: LeaseStore,
): Promise<void> {
  const ended = [
    await settled(service.close()),
    await settled(lastEntry()),
    await settled(shipping?.close() ?? Promise.resolve()),
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

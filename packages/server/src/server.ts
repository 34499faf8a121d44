/** A running server: the store, the service over it, and the HTTP side, opened and closed in order. */
import type { AddressInfo } from "node:net";
import { type Env, openStore, realEnv, StoreLeaseManager } from "solehold";
import { type AuditTrail, FileAuditTrail, LeaseService, MemoryAuditTrail } from "solehold/service";
import { buildApp } from "./app.ts";
import { Commands, contextOf, withBigints } from "./commands.ts";
import type { ServerConfig } from "./config.ts";
import { commandRoutes } from "./routes/commands.ts";
import { healthRoutes } from "./routes/health.ts";
import { leaseRoutes } from "./routes/leases.ts";

export interface RunningServer {
  readonly url: string;
  readonly service: LeaseService;
  close(): Promise<void>;
}

export async function startServer(config: ServerConfig, env: Env = realEnv): Promise<RunningServer> {
  const store = await openStore(config.store, { env });
  const manager = new StoreLeaseManager({ store, env });
  const audit = await openAudit(config);
  const service = new LeaseService({ manager, audit, env });
  const commands = new Commands(service, {
    acquire: (key, { waitMs: _waitMs, ...input }, call) =>
      service.grant({ key, ...withBigints(input) }, contextOf(call)),
    decided: () => undefined,
  });
  const routes = [...healthRoutes(), ...commandRoutes(commands), ...leaseRoutes(service)];
  const app = buildApp({ env, routes, bodyLimitBytes: config.bodyLimitBytes });
  await app.listen({ host: config.host, port: config.port });
  const { address, port, family } = app.server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${port}`,
    service,
    close: async () => {
      await app.close();
      await service.close();
      await audit.close();
      await manager.close();
    },
  };
}

async function openAudit({ audit, dataDir }: ServerConfig): Promise<AuditTrail> {
  if (audit === "memory") return new MemoryAuditTrail({ capacity: 10_000, invalidEvents: "sanitise" });
  return await FileAuditTrail.open({
    folder: `${dataDir}/audit`,
    durability: audit,
    invalidEvents: "sanitise",
  });
}

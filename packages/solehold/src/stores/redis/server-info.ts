/** What INFO says of the server that answers, and whether leases can be safe there. */
import { StoreError } from "../../store/index.ts";

export interface ServerInfo {
  /** Another one after every restart, failover and promotion. */
  readonly serverId: string;
  readonly role: string;
  readonly version: string;
  /** The policy by which the server may drop keys of its own accord; null if it may not. */
  readonly evicts: string | null;
  readonly appendOnly: boolean;
  readonly connectedReplicas: number;
}

/**
 * The run id changes with every start of a process. The replication id also changes when a replica is promoted, and so
 * when a primary that was demoted for a while, and got another's data, is promoted again.
 */
export function parseInfo(text: string): ServerInfo {
  const field = (name: string): string => new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(text)?.[1] ?? "";
  const policy = field("maxmemory_policy");
  const runId = field("run_id");
  return {
    serverId: runId === "" ? "" : `${runId}.${field("master_replid")}`,
    role: field("role"),
    version: field("redis_version"),
    evicts: policy.startsWith("allkeys-") && field("maxmemory") !== "0" ? policy : null,
    appendOnly: field("aof_enabled") === "1",
    connectedReplicas: Number(field("connected_slaves")) || 0,
  };
}

/** Refuses a server on which leases could not be safe. A replica is not lasting: the address may mean another soon. */
export function assertUsable(info: ServerInfo, address: string): void {
  if (info.role === "slave") {
    const message = `Redis at ${address}: it is a replica: use the address of the primary`;
    throw new StoreError("unreachable", message, { outcome: "not-applied" });
  }
  const problem = serverProblem(info);
  if (problem === null) return;
  throw new StoreError("config", `Redis at ${address}: ${problem}`, { outcome: "not-applied" });
}

function serverProblem(info: ServerInfo): string | null {
  if (!isAtLeast(info.version, 5, 0)) return `version ${info.version} is too old: use 5 or later`;
  if (info.evicts !== null) {
    return `maxmemory-policy is ${info.evicts}, so it may drop leases: set it to noeviction or volatile-lru`;
  }
  return info.serverId === "" ? "INFO shows no run_id, without which a restart cannot be noticed" : null;
}

export function isAtLeast(version: string, major: number, minor: number): boolean {
  const [foundMajor = 0, foundMinor = 0] = version.split(".").map(Number);
  return foundMajor > major || (foundMajor === major && foundMinor >= minor);
}

/** What the server says of itself, and whether leases can be safe there. */
import { StoreError } from "../../store/index.ts";

export interface ServerInfo {
  /** Another one after every restart, failover and promotion. */
  readonly serverId: string;
  readonly isReplica: boolean;
  readonly version: string;
  /** The policy by which it may drop keys of its own accord; null if it may not. */
  readonly evicts: string | null;
  readonly hasAppendOnlyFile: boolean;
  readonly connectedReplicas: number;
}

/**
 * From the text of INFO. The run id changes with every start of a process. The replication id also changes when a
 * replica is promoted, and so when a primary that was demoted for a while, and got other data, is promoted again.
 */
export function parseInfo(text: string): ServerInfo {
  const field = (name: string): string => new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(text)?.[1] ?? "";
  const policy = field("maxmemory_policy");
  const runId = field("run_id");
  return {
    serverId: runId === "" ? "" : `${runId}.${field("master_replid")}`,
    isReplica: field("role") === "slave",
    version: field("redis_version"),
    evicts: policy.startsWith("allkeys-") && field("maxmemory") !== "0" ? policy : null,
    hasAppendOnlyFile: field("aof_enabled") === "1",
    connectedReplicas: Number(field("connected_slaves")) || 0,
  };
}

/** Refuses a server on which leases could not be safe. */
export function assertUsable(info: ServerInfo, address: string): void {
  const problem = problemOf(info);
  if (problem === null) return;
  // The address of a replica may soon mean a primary; the rest does not change by waiting.
  const kind = info.isReplica ? "unreachable" : "config";
  throw new StoreError(kind, `Redis at ${address}: ${problem}`, { outcome: "not-applied" });
}

function problemOf({ isReplica, version, evicts, serverId }: ServerInfo): string | null {
  if (isReplica) return "it is a replica: use the address of the primary";
  if (!isAtLeast(version, 5, 0)) return `version ${version} is too old: use 5 or later`;
  if (evicts !== null) return `maxmemory-policy ${evicts} may drop leases: use noeviction or volatile-lru`;
  return serverId === "" ? "INFO shows no run_id, without which a restart cannot be noticed" : null;
}

export function isAtLeast(version: string, major: number, minor: number): boolean {
  const [foundMajor = 0, foundMinor = 0] = version.split(".").map(Number);
  return foundMajor > major || (foundMajor === major && foundMinor >= minor);
}

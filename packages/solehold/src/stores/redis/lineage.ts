/**
 * The identity of the data, and how its loss is noticed.
 *
 * Redis can lose what it acknowledged: FLUSHALL, a restart without persistence, a failover to a replica
 * that lagged behind, a restored backup. Then old fences would be handed out again. So the data has
 *
 *   an id, drawn when its data begins. Wiped data has none, or another one.
 *   a sequence, raised by every call that writes. Data that lost its last writes is behind what its
 *     clients saw. Its key bears the id, so one INCR checks both.
 *   a floor: the time, in microseconds, at which the data began. A key without a record starts above it.
 *     No key is granted once a microsecond, so data that begins later begins above all earlier fences.
 *   the server's run id, and the floor as it was raised when another run was first seen. Writes may have
 *     been lost between two runs even if no client that is still alive saw them; a grant that follows
 *     an older record must then be above the raised floor.
 *
 * What this cannot see: a loss behind a proxy that hides it and that no living client witnessed; a server
 * whose clock was set back by more than the time since the data began.
 */
import { StoreError } from "../../store/index.ts";

export interface ServerInfo {
  readonly runId: string;
  readonly role: string;
  readonly version: string;
  /** Whether the server may drop keys of its own accord. */
  readonly evicts: string | null;
  readonly appendOnly: boolean;
}

export function parseInfo(text: string): ServerInfo {
  const field = (name: string): string => new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(text)?.[1] ?? "";
  const policy = field("maxmemory_policy");
  return {
    runId: field("run_id"),
    role: field("role"),
    version: field("redis_version"),
    evicts: policy.startsWith("allkeys-") && field("maxmemory") !== "0" ? policy : null,
    appendOnly: field("aof_enabled") === "1",
  };
}

/** Refuses a server on which leases could not be safe. */
export function assertUsable(info: ServerInfo, address: string): void {
  const problem = serverProblem(info);
  if (problem !== null)
    throw new StoreError("config", `Redis at ${address}: ${problem}`, { outcome: "not-applied" });
}

function serverProblem(info: ServerInfo): string | null {
  if (info.role === "slave") return "it is a replica: use the address of the primary";
  if (Number.parseInt(info.version, 10) < 5) return `version ${info.version} is too old: use 5 or later`;
  if (info.evicts !== null) {
    return `maxmemory-policy is ${info.evicts}, so it may drop leases: set it to noeviction or volatile-lru`;
  }
  return info.runId === "" ? "INFO shows no run_id, without which a restart cannot be noticed" : null;
}

/** Why nothing is granted any more. */
export function lossError(address: string, what: string): StoreError {
  return new StoreError(
    "internal",
    `Redis at ${address} lost data (${what}): nothing is read or written until acceptDataLoss() is called or the store is opened anew`,
    { outcome: "not-applied" },
  );
}

/**
 * Waiting until others have a write: WAIT for replicas, WAITAOF (Redis 7.2 and later) for disks as well. Redis answers a
 * write before its replicas have it, and `min-replicas-to-write` does not change that: it only counts who was connected.
 *
 * A call whose wait falls short is rejected with its outcome unknown. The primary has the write, and keeps it if it
 * lives; a replica that is promoted may not have it. Neither "applied" nor "not applied" would be true. Reads wait as
 * well: otherwise a look at what became of such a write would find it on the primary, and be believed. (A WAIT
 * after a read waits for all that the primary had written by then, by any client: a test makes sure.)
 */
import { StoreError } from "../../store/index.ts";
import { isAtLeast, type ServerInfo } from "./server-info.ts";

export interface Durability {
  /** How many replicas must have a write before it is acknowledged. */
  readonly replicas: number;
  /** "wait": the disks of the primary and of these replicas must have it, too. */
  readonly fsync: "server" | "wait";
}

export interface Acknowledgement {
  readonly command: "wait" | "waitaof";
  /** What the reply must reach, and how long to wait for it. */
  readonly counts: readonly number[];
  readonly limitMs: number;
}

export function acknowledgementOf(
  { replicas, fsync }: Durability,
  timeoutMs: number,
): Acknowledgement | null {
  // The wait ends in time for its reply to arrive. A limit of 0 would be none.
  const limitMs = Math.max(1, Math.floor(timeoutMs / 2));
  if (fsync === "wait") return { command: "waitaof", counts: [1, replicas], limitMs };
  return replicas === 0 ? null : { command: "wait", counts: [replicas], limitMs };
}

/** In words what the reply, or the error that came instead, falls short of; null if nothing. */
export function shortage({ command, counts }: Acknowledgement, reply: unknown): string | null {
  if (reply instanceof Error) return `a write is not known to be safe: ${reply.message}`;
  const reached = [reply].flat().map(Number);
  if (counts.every((count, index) => (reached[index] ?? 0) >= count)) return null;
  const who = command === "wait" ? "replicas" : "primary and replicas (synced to disk)";
  return `a write is not yet safe: of ${counts.join(" and ")} ${who} only ${reached.join(" and ")} have it`;
}

/** Refuses a server that cannot wait for disks, or has too few replicas to wait for. */
export function assertCanWait(server: ServerInfo, { replicas, fsync }: Durability, address: string): void {
  const { version, hasAppendOnlyFile, connectedReplicas } = server;
  const refuse = (kind: StoreError["kind"], problem: string): never => {
    throw new StoreError(kind, `Redis at ${address}: ${problem}`, { outcome: "not-applied" });
  };
  if (fsync === "wait" && !isAtLeast(version, 7, 2)) {
    refuse("config", `fsync "wait" needs Redis 7.2 or later, this is ${version}`);
  }
  if (fsync === "wait" && !hasAppendOnlyFile) refuse("config", 'fsync "wait" needs appendonly yes');
  if (connectedReplicas < replicas) {
    refuse("unreachable", `of ${replicas} replicas only ${connectedReplicas} are connected`);
  }
}

/** Whether every acknowledged write outlives a crash, and the promotion of any replica that is connected now. */
export function isDurable(server: ServerInfo, { replicas, fsync }: Durability, syncs: "yes" | "no"): boolean {
  const isOnDisk = server.hasAppendOnlyFile && (fsync === "wait" || syncs === "yes");
  return isOnDisk && server.connectedReplicas <= replicas;
}

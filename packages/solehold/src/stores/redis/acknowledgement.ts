/**
 * Waiting until others have a write: WAIT for replicas, WAITAOF (Redis 7.2 and later) for disks as well. Redis answers a
 * write before its replicas have it, and `min-replicas-to-write` does not change that: it only counts who was connected.
 *
 * A call whose wait falls short is rejected with its outcome unknown. The primary has the write, and keeps it if it
 * lives; a replica that is promoted may not have it. Neither "applied" nor "not applied" would be true. Reads wait as
 * well: otherwise whoever looks up what became of such a write would find it on the primary, and believe in it.
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
  readonly args: readonly string[];
  /** What the reply falls short of; null if nothing. */
  problem(counts: unknown): string | null;
}

export function acknowledgementOf(
  { replicas, fsync }: Durability,
  timeoutMs: number,
): Acknowledgement | null {
  if (replicas === 0 && fsync === "server") return null;
  // The wait ends in time for its reply to arrive. A limit of 0 would be none.
  const limitMs = String(Math.max(1, Math.floor(timeoutMs / 2)));
  const wanted = fsync === "server" ? [replicas] : [1, replicas];
  return {
    command: fsync === "server" ? "wait" : "waitaof",
    args: [...wanted.map(String), limitMs],
    problem: (reply) => {
      const counts = Array.isArray(reply) ? reply.map(Number) : [Number(reply)];
      if (wanted.every((want, index) => (counts[index] ?? 0) >= want)) return null;
      const who = fsync === "server" ? "replicas" : "primary and replicas (synced to disk)";
      return `a write is not yet safe: of ${wanted.join(" and ")} ${who} only ${counts.join(" and ")} have it`;
    },
  };
}

/** Refuses a server that cannot wait for disks. */
export function assertCanWait(server: ServerInfo, { fsync }: Durability, address: string): void {
  if (fsync === "server") return;
  const isNew = isAtLeast(server.version, 7, 2);
  if (isNew && server.hasAppendOnlyFile) return;
  const missing = isNew
    ? "an append-only file: set appendonly yes"
    : `Redis 7.2 or later, this is ${server.version}`;
  throw new StoreError("config", `Redis at ${address}: fsync "wait" needs ${missing}`, {
    outcome: "not-applied",
  });
}

/**
 * Whether every acknowledged write outlives a crash, and the promotion of any replica that is connected now. `syncs`
 * tells whether the server syncs each write to its disk before it answers.
 */
export function isDurable(server: ServerInfo, { replicas, fsync }: Durability, syncs: "yes" | "no"): boolean {
  return (
    server.hasAppendOnlyFile && (fsync === "wait" || syncs === "yes") && server.connectedReplicas <= replicas
  );
}

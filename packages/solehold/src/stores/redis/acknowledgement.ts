/**
 * Waiting until others have a write: WAIT for replicas, WAITAOF (Redis 7.2 and later) for disks as well. Redis answers a
 * write before its replicas have it, and `min-replicas-to-write` does not change that: it only counts who was connected.
 *
 * A call whose wait falls short is rejected with its outcome unknown. The primary has the write, and keeps it if it
 * lives; a replica that is promoted may not have it. Neither "applied" nor "not applied" would be true. Reads wait as
 * well: otherwise whoever looks up what became of such a write would find it on the primary, and believe in it. (A WAIT
 * after a read waits for all that the primary had written by then, whoever wrote it: a test makes sure.)
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
  /** What the reply, or the error that came instead, falls short of; null if nothing. */
  problem(reply: unknown): string | null;
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
      if (reply instanceof Error) return `a write is not known to be safe: ${reply.message}`;
      const counts = Array.isArray(reply) ? reply.map(Number) : [Number(reply)];
      if (wanted.every((want, index) => (counts[index] ?? 0) >= want)) return null;
      const who = fsync === "server" ? "replicas" : "primary and replicas (synced to disk)";
      return `a write is not yet safe: of ${wanted.join(" and ")} ${who} only ${counts.join(" and ")} have it`;
    },
  };
}

/** Refuses a server that cannot wait for disks, or has too few replicas to wait for. */
export function assertCanWait(server: ServerInfo, { replicas, fsync }: Durability, address: string): void {
  const refuse = (kind: "config" | "unreachable", problem: string): never => {
    throw new StoreError(kind, `Redis at ${address}: ${problem}`, { outcome: "not-applied" });
  };
  if (fsync === "wait" && !isAtLeast(server.version, 7, 2)) {
    refuse("config", `fsync "wait" needs Redis 7.2 or later, this is ${server.version}`);
  }
  if (fsync === "wait" && !server.hasAppendOnlyFile) refuse("config", 'fsync "wait" needs appendonly yes');
  if (server.connectedReplicas < replicas) {
    refuse("unreachable", `of ${replicas} replicas only ${server.connectedReplicas} are connected`);
  }
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

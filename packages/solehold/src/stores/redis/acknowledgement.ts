/**
 * Waiting until others have a write: WAIT for replicas, WAITAOF (Redis 7.2 and later) for disks as well. Redis answers a
 * write before its replicas have it, and `min-replicas-to-write` does not change that: it only counts who was connected.
 *
 * A call whose wait falls short is rejected with its outcome unknown. The primary has the write, and keeps it if it
 * lives; a replica that is promoted may not have it. Neither "applied" nor "not applied" would be true. Reads wait as
 * well: otherwise whoever looks up what became of such a write would find it on the primary, and believe in it.
 */

export interface Acknowledgement {
  readonly command: "wait" | "waitaof";
  readonly args: readonly string[];
  /** What the reply falls short of; null if nothing. */
  problem(counts: unknown): string | null;
}

export interface Durability {
  /** How many replicas must have a write before it is acknowledged. */
  readonly replicas: number;
  /** "wait": the disks of the primary and of these replicas must have it, too. */
  readonly fsync: "server" | "wait";
}

export function acknowledgementOf(
  { replicas, fsync }: Durability,
  timeoutMs: number,
): Acknowledgement | null {
  if (replicas === 0 && fsync === "server") return null;
  // The wait is over in time for its reply to be heard. A limit of 0 would be none.
  const limitMs = Math.max(1, Math.floor(timeoutMs / 2));
  if (fsync === "server") {
    const problem = (count: unknown): string | null => shortage("replicas have it", Number(count), replicas);
    return { command: "wait", args: [String(replicas), String(limitMs)], problem };
  }
  return {
    command: "waitaof",
    args: ["1", String(replicas), String(limitMs)],
    problem: (counts) => {
      const [local, remote] = (Array.isArray(counts) ? counts : []).map(Number);
      return (
        shortage("append-only file of the primary has it", local, 1) ??
        shortage("append-only files of replicas have it", remote, replicas)
      );
    },
  };
}

function shortage(what: string, count: number | undefined, wanted: number): string | null {
  if (count !== undefined && count >= wanted) return null;
  return `a write is not yet safe: only ${count || 0} of ${wanted} ${what}`;
}

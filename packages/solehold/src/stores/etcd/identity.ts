/**
 * Notices a cluster that lost what it had acknowledged: one that was restored from a backup, or another one behind the
 * same addresses. In a cluster that kept its data the id stays, and the revision and the index of the Raft log only grow.
 * A restore begins a new log, so the index goes back even where the revision does not, because others have written since
 * or the restore raised it.
 *
 * What is not noticed: a restore under the same cluster id (the same token and peer URLs) after which more was written
 * than in the whole life of the cluster before this client connected; and what this client never saw. A value stored
 * beside the records would not help, because the restore brings the old value back with the old records.
 */
export interface Sighting {
  readonly clusterId: string;
  readonly revision: bigint;
  /** Null where it was not asked for. */
  readonly raftIndex: bigint | null;
}

/** What had been seen when a request was sent: its reply must not be behind. */
export interface Seen {
  readonly clusterId: string | null;
  readonly revision: bigint;
  readonly raftIndex: bigint;
  /** How many losses were noticed before. */
  readonly losses: number;
}

export class ClusterIdentity {
  #seen: Seen = { clusterId: null, revision: 0n, raftIndex: 0n, losses: 0 };
  #unreported: string | null = null;

  get seen(): Seen {
    return this.#seen;
  }

  /** After a loss, what is there becomes the new base. The reply to a request from before a loss is no evidence. */
  learn({ clusterId, revision, raftIndex }: Sighting, asked: Seen): void {
    const { losses, ...seen } = this.#seen;
    if (asked.losses !== losses) return;
    const loss = lossBetween(asked, { clusterId, revision, raftIndex });
    const index = raftIndex ?? 0n;
    if (loss === null) {
      const [highest, longest] = [larger(revision, seen.revision), larger(index, seen.raftIndex)];
      this.#seen = { clusterId, revision: highest, raftIndex: longest, losses };
    } else {
      this.#seen = { clusterId, revision, raftIndex: index, losses: losses + 1 };
      this.#unreported = loss;
    }
  }

  /** A loss that no caller knows of yet. It is handed out once. */
  takeLoss(): string | null {
    const loss = this.#unreported;
    this.#unreported = null;
    return loss;
  }
}

function lossBetween(asked: Seen, { clusterId, revision, raftIndex }: Sighting): string | null {
  if (asked.clusterId === null) return null;
  if (clusterId !== asked.clusterId) return "another cluster answers";
  if (revision < asked.revision) return `it went back from revision ${asked.revision} to ${revision}`;
  if (raftIndex === null || raftIndex >= asked.raftIndex) return null;
  return `its log went back from entry ${asked.raftIndex} to ${raftIndex}`;
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

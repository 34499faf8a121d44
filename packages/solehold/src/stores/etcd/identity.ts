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

/** The index is zero where it was not asked for. */
export type Sighting = Readonly<{ clusterId: string; revision: bigint; raftIndex: bigint }>;

export class ClusterIdentity {
  /** How many losses were noticed. */
  losses = 0;
  #seen: Sighting | null = null;
  #unreported: string | null = null;

  /** To be called before a request is sent. Its reply, given to the result, must not be behind what was seen before. */
  expectReply(): (reply: Sighting) => void {
    const { losses } = this;
    const before = this.#seen;
    return (reply) => {
      // Asked before a loss that others have noticed since: it is no evidence of another.
      if (losses !== this.losses) return;
      const loss = before === null ? null : lossBetween(before, reply);
      const seen = loss === null && this.#seen !== null ? this.#seen : reply;
      const raftIndex = larger(reply.raftIndex, seen.raftIndex);
      this.#seen = { ...reply, revision: larger(reply.revision, seen.revision), raftIndex };
      if (loss === null) return;
      this.losses += 1;
      this.#unreported = loss;
    };
  }

  /** A loss that no caller knows of yet. It is handed out once. */
  takeLoss(): string | null {
    const loss = this.#unreported;
    this.#unreported = null;
    return loss;
  }
}

function lossBetween(before: Sighting, { clusterId, revision, raftIndex }: Sighting): string | null {
  if (clusterId !== before.clusterId) return "another cluster answers";
  if (revision < before.revision) return `it went back from revision ${before.revision} to ${revision}`;
  if (raftIndex === 0n || raftIndex >= before.raftIndex) return null;
  return `its log went back from entry ${before.raftIndex} to ${raftIndex}`;
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

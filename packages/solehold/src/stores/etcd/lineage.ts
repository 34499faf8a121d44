/**
 * Notices a cluster that lost what it had acknowledged: one that was restored from a backup, or another one
 * behind the same addresses. Its revisions would begin again below those that were seen, and a version that
 * somebody remembers could come back with another record. So from then on nothing is read or written until
 * the store is opened anew, when no lease of before can be believed in any more.
 *
 * It sees only what this client can see: a restore that others have meanwhile written beyond is not noticed.
 */
import type { FailedOutcome } from "../../store/index.ts";
import { EtcdError } from "./failures.ts";
import type { ResponseHeader } from "./messages.ts";

export class Lineage {
  #clusterId: bigint | null = null;
  #revision = 0n;
  #loss: string | null = null;

  /** The highest revision of all replies so far: whatever is asked from now on must be answered at or above it. */
  get revision(): bigint {
    return this.#revision;
  }

  /** `outcome` is what is true of the request for whose sake it is asked. */
  assertIntact(addresses: string, outcome: FailedOutcome): void {
    if (this.#loss === null) return;
    const message = `etcd at ${addresses} lost data (${this.#loss}): nothing is read or written until the store is opened anew`;
    throw new EtcdError({ kind: "internal", remedy: "none" }, message, outcome);
  }

  /** A reply to a question that was asked when `revision` was `askedAt`. */
  learn({ clusterId, revision }: ResponseHeader, askedAt: bigint): void {
    this.#clusterId ??= clusterId;
    if (clusterId !== this.#clusterId) this.#loss = "another cluster answers";
    else if (revision < askedAt) this.#loss = `it went back from revision ${askedAt} to ${revision}`;
    else if (revision > this.#revision) this.#revision = revision;
  }
}

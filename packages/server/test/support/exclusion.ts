/**
 * Who believes to hold what, over all clients of a test: they live in one process and read one clock, so two
 * that believe at once are seen as such. It also remembers the newest fence that a client got of each key.
 */
import type { Lease } from "solehold";
import { FencedResource } from "solehold/guards";

export class Exclusion {
  /** What went wrong, in words; empty when nothing did. */
  readonly broken: string[] = [];
  /** Every grant that a client got. */
  readonly grants: { readonly name: string; readonly fence: bigint; readonly holder: string }[] = [];
  /** Guarded writes per key. */
  readonly counters = new Map<string, FencedResource<number>>();
  readonly #latest = new Map<string, Lease>();
  #writes = 0;

  /** A client got this grant. */
  granted(lease: Lease): void {
    const { name, fence, holder } = lease;
    if (!lease.isHeld()) return;
    const before = this.#latest.get(name);
    if (before?.isHeld()) this.broken.push(`${name}: ${holder} granted while ${before.holder} believes`);
    if (before !== undefined && before.fence >= fence) {
      this.broken.push(`${name}: fence ${fence} after ${before.fence}`);
    }
    this.#latest.set(name, lease);
    this.grants.push({ name, fence, holder });
  }

  /** A write under the lease; one that the guard refuses although its writer believes is a mistake. */
  write(lease: Lease): void {
    const counter = this.counters.get(lease.name) ?? new FencedResource(0);
    this.counters.set(lease.name, counter);
    if (!lease.isHeld()) return;
    try {
      counter.write(lease, (count) => count + 1);
      this.#writes += 1;
    } catch (error) {
      this.broken.push(`${lease.name}: ${lease.holder} believes, and ${String(error)}`);
    }
  }

  /** The last grant of each key that a client got. */
  latest(): readonly Lease[] {
    return [...this.#latest.values()];
  }

  /** No accepted write was lost or doubled. */
  countsAgree(): boolean {
    let total = 0;
    for (const { state } of this.counters.values()) total += state;
    return total === this.#writes;
  }
}

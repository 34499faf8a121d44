/** Leases by name, always in order: one change among a hundred thousand costs a search, not a sort. */
import type { Lease } from "./api.ts";

export class SortedLeases {
  readonly #leases: Lease[] = [];

  /** In order of the name. The same array as ever, with the changes in it. */
  get all(): readonly Lease[] {
    return this.#leases;
  }

  get size(): number {
    return this.#leases.length;
  }

  get(name: string): Lease | undefined {
    const found = this.#leases[this.#indexOf(name)];
    return found?.name === name ? found : undefined;
  }

  put(lease: Lease): void {
    const index = this.#indexOf(lease.name);
    const isKnown = this.#leases[index]?.name === lease.name;
    this.#leases.splice(index, isKnown ? 1 : 0, lease);
  }

  delete(name: string): void {
    const index = this.#indexOf(name);
    if (this.#leases[index]?.name === name) this.#leases.splice(index, 1);
  }

  /** Where it is, or where it would be inserted. */
  #indexOf(name: string): number {
    const last = this.#leases.at(-1);
    // Listings come in order.
    if (last === undefined || last.name < name) return this.#leases.length;
    let low = 0;
    let high = this.#leases.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#leases[middle] as Lease).name < name) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

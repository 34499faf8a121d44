/**
 * Open connections of each address, whether a key came by them or not. One address leaves some of the server's to others, so
 * that it cannot shut them out. What is one client and what is a machine of many cannot be told apart: so it may have most.
 */
const MOST_PERCENT = 80;

export class Addresses {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  /** `limit`: for all addresses together. */
  constructor(limit: number) {
    this.#most = Math.max(1, Math.floor((limit * MOST_PERCENT) / 100));
  }

  /** One more connection. Returns how to free it; null where there are too many. */
  take(address: string): (() => void) | null {
    const open = this.#open.get(address) ?? 0;
    if (open >= this.#most) return null;
    this.#open.set(address, open + 1);
    return () => {
      const left = (this.#open.get(address) ?? 0) - 1;
      if (left > 0) this.#open.set(address, left);
      else this.#open.delete(address);
    };
  }
}

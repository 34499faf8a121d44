/** Versions of rows: random and never the same twice, in the form in which the database shows them. */
import type { Env } from "../../env/index.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A version that no row has, for those that this store never gave out. */
const NO_VERSION = "00000000-0000-0000-0000-000000000000";
const BYTES = 16;
const DRAWN_AT_ONCE = 64;

/** Made in bulk: a lone write needs one, and each by itself would be a tenth of the client's work for it. */
export class Versions {
  readonly #env: Env;
  #ready: string[] = [];

  constructor(env: Env) {
    this.#env = env;
  }

  next(): string {
    const next = this.#ready.pop();
    if (next !== undefined) return next;
    this.#ready = this.#drawn();
    return this.next();
  }

  #drawn(): string[] {
    const { buffer, byteOffset, length } = this.#env.randomBytes(BYTES * DRAWN_AT_ONCE);
    const bytes = Buffer.from(buffer, byteOffset, length);
    return Array.from({ length: DRAWN_AT_ONCE }, (_, index) => {
      const part = (from: number, to: number): string =>
        bytes.toString("hex", index * BYTES + from, index * BYTES + to);
      return [part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16)].join("-");
    });
  }
}

/** What the database can compare: a version that is none of this store's would be an error there. */
export function knownVersion(expected: string): string {
  return UUID.test(expected) ? expected : NO_VERSION;
}

/** Versions of rows: random and never the same twice, in the form in which the database shows them. */
import type { Env } from "../../env/index.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A version that no row has, for those that this store never gave out. */
const NO_VERSION = "00000000-0000-0000-0000-000000000000";
const BYTES = 16;
const DRAWN_AT_ONCE = 64;

/** Drawn in bulk: a lone write needs one, and each by itself would be several steps into the runtime. */
export class Versions {
  readonly #env: Env;
  #digits = "";
  #used = 0;

  constructor(env: Env) {
    this.#env = env;
  }

  next(): string {
    if (this.#used === this.#digits.length) {
      const { buffer, byteOffset, length } = this.#env.randomBytes(BYTES * DRAWN_AT_ONCE);
      this.#digits = Buffer.from(buffer, byteOffset, length).toString("hex");
      this.#used = 0;
    }
    const start = this.#used;
    this.#used += BYTES * 2;
    const part = (from: number, to: number): string => this.#digits.slice(start + from, start + to);
    return `${part(0, 8)}-${part(8, 12)}-${part(12, 16)}-${part(16, 20)}-${part(20, 32)}`;
  }
}

/** What the database can compare: a version that is none of this store's would be an error there. */
export function knownVersion(expected: string): string {
  return UUID.test(expected) ? expected : NO_VERSION;
}

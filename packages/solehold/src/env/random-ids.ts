/** Ids as `randomId` makes them, drawn in bulk: for who needs several of them for every command. */
import type { Env } from "./env.ts";

const ID_BYTES = 16;
const IDS_AT_ONCE = 64;

export class RandomIds {
  readonly #env: Env;
  #bytes = Buffer.alloc(0);
  #used = 0;

  constructor(env: Env) {
    this.#env = env;
  }

  /** 128 random bits as 22 characters of base64url. */
  next(): string {
    if (this.#used === this.#bytes.length) this.#draw();
    const start = this.#used;
    this.#used += ID_BYTES;
    return this.#bytes.toString("base64url", start, this.#used);
  }

  #draw(): void {
    // A copy: what the port gave may be part of a pool of its own.
    this.#bytes = Buffer.from(this.#env.randomBytes(ID_BYTES * IDS_AT_ONCE));
    this.#used = 0;
  }
}

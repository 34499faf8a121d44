/** 128 random bits each, drawn in bulk: a server needs several of them for every command. */
import type { Env } from "./env.ts";

const ID_BYTES = 16;
const IDS_AT_ONCE = 64;

export class RandomIds {
  readonly #env: Env;
  readonly #encoding: "base64url" | "hex";
  #bytes = Buffer.alloc(0);
  #used = 0;

  /** "base64url", as `randomId` makes them: 22 characters. "hex": 32. */
  constructor(env: Env, encoding: "base64url" | "hex" = "base64url") {
    this.#env = env;
    this.#encoding = encoding;
  }

  next(): string {
    if (this.#used === this.#bytes.length) this.#draw();
    const start = this.#used;
    this.#used += ID_BYTES;
    return this.#bytes.toString(this.#encoding, start, this.#used);
  }

  #draw(): void {
    // A copy: what the port gave may be part of a pool of its own.
    this.#bytes = Buffer.from(this.#env.randomBytes(ID_BYTES * IDS_AT_ONCE));
    this.#used = 0;
  }
}

/** What differs between the protocols of object stores: addresses, signatures, listings, words for errors. */
import type { HttpRequest } from "./http.ts";
import type { ObjectPage } from "./port.ts";
import type { Words } from "./replies.ts";

export type Headers = Readonly<Record<string, string>>;

export interface UnsignedRequest {
  readonly method: HttpRequest["method"];
  readonly url: string;
  readonly headers: Headers;
  readonly body: Uint8Array | undefined;
}

export interface Dialect {
  readonly words: Words;
  /** Headers with this prefix are the object's metadata. */
  readonly metadataPrefix: string;
  /** Headers of every write of an object. */
  readonly putHeaders: Headers;
  urlOf(name: string): string;
  /** All headers of the request, with what proves who sends it. */
  signed(request: UnsignedRequest): Promise<Headers>;
  /** Null where the protocol has no listing. */
  listUrl(prefix: string, after: string | null): string | null;
  parseList(body: string): Omit<ObjectPage, "dateMs">;
}

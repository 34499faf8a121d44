/**
 * Any HTTP server that keeps resources with strong ETags and honours If-Match and If-None-Match on PUT.
 * There is no standard for listing, so this store cannot list. It is opt-in by its scheme `https+etag:`.
 */
import type { Dialect, Headers } from "./dialect.ts";
import { escapePath } from "./names.ts";

export interface EtagPlace {
  /** Everything lies below this. */
  readonly base: string;
  /** Sent along with every request, for instance an Authorization. */
  readonly headers: Headers;
}

export function etagDialect({ base, headers }: EtagPlace): Dialect {
  const root = base.replace(/\/$/, "");
  return {
    words: {
      place: `HTTP server at ${new URL(base).origin}`,
      errorCodeOf: () => "",
      credentialsAdvice: "pass an Authorization header, or user and password in the URL",
      placeAdvice: "correct the path of the URL",
    },
    metadataPrefix: "x-meta-",
    putHeaders: {},
    urlOf: (name) => `${root}/${escapePath(name)}`,
    signed: async (request) => ({ ...headers, ...request.headers }),
    listUrl: () => null,
    parseList: () => ({ names: [], next: null }),
  };
}

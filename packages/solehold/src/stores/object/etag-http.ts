/**
 * Any HTTP server that keeps resources with strong ETags and honours If-Match and If-None-Match on PUT.
 * There is no standard for listing, so this store cannot list. It is opt-in by its scheme `https+etag:`.
 */
import { HttpClient, type HttpOptions } from "../support/http.ts";
import { escapePath } from "./names.ts";
import type { Protocol } from "./protocol.ts";

export interface EtagPlace {
  /** Everything lies below this. */
  readonly base: string;
  /** Sent along with every request, for instance an Authorization. */
  readonly headers: Readonly<Record<string, string>>;
}

export function etagProtocol({ base, headers }: EtagPlace, options: Omit<HttpOptions, "place">): Protocol {
  const root = base.replace(/\/$/, "");
  const place = `HTTP server at ${new URL(base).origin}`;
  const http = new HttpClient({ ...options, place });
  return {
    place,
    http: {
      send: (request) => http.send({ ...request, headers: { ...headers, ...request.headers } }),
      close: () => http.close(),
    },
    credentialsAdvice: "pass an Authorization header, or user and password in the URL",
    placeAdvice: "correct the path of the URL",
    putHeaders: {},
    errorCodeOf: () => "",
    urlOf: (name) => `${root}/${escapePath(name)}`,
    listing: null,
  };
}

// What the page of errors says about each: of the library's errors the comments of their classes; of requests that never
// became a command, a sentence here.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const SOURCE = join(import.meta.dirname, "../packages/solehold/src");
const FILES = ["client/errors.ts", "guards/stale-fence-error.ts"];
const CLASS =
  /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport class (\w+) extends Lease(?:Held)?Error \{([\s\S]*?)\n\}/g;
const CODES = /export type LeaseErrorCode =([^;]+);/;
const names = (/** @type {string} */ text) => [...text.matchAll(/"([A-Z_]+)"/g)].map(([, name = ""]) => name);

/** @returns {readonly { code: string, error: string, meaning: string }[]} In the order of their codes. */
export function libraryErrors() {
  const texts = FILES.map((file) => readFileSync(join(SOURCE, file), "utf8"));
  const found = new Map(
    texts
      .flatMap((text) => [...text.matchAll(CLASS)])
      .map(([, comment = "", error = "", body = ""]) => {
        const meaning = comment.replaceAll(/\s*\n \* ?/g, " ").trim();
        return [names(body).at(-1), { error, meaning }];
      }),
  );
  return names(CODES.exec(texts[0] ?? "")?.[1] ?? "").map((code) => {
    const about = found.get(code);
    if (about === undefined) throw new Error(`no class of ${FILES.join(", ")} has the code ${code}`);
    return { code, ...about };
  });
}

/** By reason. The server's `detail` says more. @type {Readonly<Record<string, string>>} */
export const REQUEST_MEANINGS = {
  UNAUTHENTICATED: "No valid API key, token or certificate came with the request.",
  FORBIDDEN: "The caller may not do this, or not to this name or tenant.",
  TOO_MANY_REQUESTS: "A limit on requests, waiters, watches or connections is reached.",
  ROUTE_NOT_FOUND: "There is no such path.",
  METHOD_NOT_ALLOWED: "The path does not take this method.",
  MEDIA_TYPE_UNSUPPORTED: "The body is not JSON.",
  BODY_TOO_LARGE: "The body is larger than it may be.",
  DRAINING: "The server is shutting down: ask another replica, or come back.",
  STORE_UNAVAILABLE:
    "The store did not answer, or with an error; `outcome` says whether the command may have been carried out.",
  SELECTION_REFUSED: "No coordinator can be chosen from this request; `coordinatorCode` says why.",
  CLIENT_GONE: "The caller closed the connection, or cancelled, before the answer.",
  STORE_CANNOT: "The store cannot do this: it cannot list, or not delete.",
};

/** Azure Blob Storage, signed with the account's key. */
import { createHmac } from "node:crypto";
import type { Env } from "../../env/index.ts";
import type { Dialect, Headers, UnsignedRequest } from "./dialect.ts";
import { escapePart, escapePath } from "./names.ts";
import { element, elements } from "./xml.ts";

export interface AzurePlace {
  readonly container: string;
  readonly account: string;
  /** Base64, as the portal shows it. */
  readonly accountKey: string;
  readonly endpoint: string;
}

const VERSION = "2021-12-02";

export function azureDialect(place: AzurePlace, env: Env): Dialect {
  const base = `${place.endpoint.replace(/\/$/, "")}/${escapePart(place.container)}`;
  return {
    words: {
      place: `Azure container '${place.container}' at ${new URL(base).origin}`,
      errorCodeOf: ({ headers, body }) =>
        headers["x-ms-error-code"] ?? element(body.toString("utf8"), "Code") ?? "",
      credentialsAdvice: "check AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY",
      placeAdvice: "create the container or correct its name in the URL",
    },
    metadataPrefix: "x-ms-meta-",
    putHeaders: { "x-ms-blob-type": "BlockBlob" },
    urlOf: (name) => `${base}/${escapePath(name)}`,
    signed: async (request) => signedHeaders(place, request, env),
    listUrl: (prefix, after) => {
      const marker = after === null ? "" : `&marker=${escapePart(after)}`;
      return `${base}?restype=container&comp=list&prefix=${escapePart(prefix)}${marker}`;
    },
    parseList: (xml) => ({ names: elements(xml, "Name"), next: element(xml, "NextMarker") || null }),
  };
}

/** The lines that "Shared Key" wants signed, in its order; most of these headers are never used here. */
function signedHeaders(place: AzurePlace, request: UnsignedRequest, env: Env): Headers {
  const headers: Record<string, string> = {
    ...request.headers,
    "x-ms-date": new Date(env.wallMs()).toUTCString(),
    "x-ms-version": VERSION,
  };
  const length = request.body?.byteLength ?? 0;
  const lines = [
    request.method,
    "",
    "",
    length === 0 ? "" : String(length),
    "",
    headers["content-type"] ?? "",
    "",
    "",
    headers["if-match"] ?? "",
    headers["if-none-match"] ?? "",
    "",
    "",
    ...Object.keys(headers)
      .filter((name) => name.startsWith("x-ms-"))
      .sort()
      .map((name) => `${name}:${headers[name]}`),
    canonicalResource(place.account, new URL(request.url)),
  ];
  const key = Buffer.from(place.accountKey, "base64");
  const signature = createHmac("sha256", key).update(lines.join("\n")).digest("base64");
  return { ...headers, authorization: `SharedKey ${place.account}:${signature}` };
}

function canonicalResource(account: string, url: URL): string {
  const parameters = [...url.searchParams]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}:${value}`);
  return [`/${account}${url.pathname}`, ...parameters].join("\n");
}

/** Azure Blob Storage, with the account's key, a shared access signature (SAS) or a bearer token. */
import { createHmac } from "node:crypto";
import type { CredentialSource, Expiring } from "../support/expiring-credentials.ts";
import type { HttpOptions, HttpReply, HttpRequest } from "../support/http.ts";
import { SignedHttp, type Signing } from "../support/signed-http.ts";
import { escapePart, escapePath } from "./names.ts";
import type { Protocol } from "./protocol.ts";
import { element, elements } from "./xml.ts";

/** One of the three. The key is base64, as the portal shows it; a SAS is the query part of a signed URL. */
export type AzureCredentials = Expiring &
  (
    | { readonly accountKey: string }
    | { readonly sasToken: string }
    /** Of Microsoft Entra, for `https://storage.azure.com/`. */
    | { readonly bearerToken: string }
  );

export interface AzurePlace {
  readonly container: string;
  readonly account: string;
  /** A function for those that expire. */
  readonly credentials: CredentialSource<AzureCredentials>;
  readonly endpoint: string;
}

const VERSION = "2021-12-02";

export function azureProtocol(
  { container, account, credentials, endpoint }: AzurePlace,
  options: Omit<HttpOptions, "place">,
): Protocol {
  const base = `${endpoint.replace(/\/$/, "")}/${escapePart(container)}`;
  const place = `Azure container '${container}' at ${new URL(base).origin}`;
  const errorCodeOf = ({ headers, body }: HttpReply): string =>
    headers["x-ms-error-code"] ?? element(body.toString("utf8"), "Code") ?? "";
  const signing: Signing<AzureCredentials> = {
    source: credentials,
    sign: (request, valid) => signed(account, request, valid, new Date(options.env.wallMs())),
    isRefused: (reply) => reply.status === 401 || errorCodeOf(reply) === "AuthenticationFailed",
  };
  return {
    place,
    http: new SignedHttp(signing, { ...options, place }),
    credentialsAdvice: "check AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or what the SAS or token allows",
    placeAdvice: "create the container or correct its name in the URL",
    putHeaders: { "x-ms-blob-type": "BlockBlob" },
    errorCodeOf,
    urlOf: (name) => `${base}/${escapePath(name)}`,
    listing: {
      url: (prefix, after, limit) => {
        const marker = after === null ? "" : `&marker=${escapePart(after)}`;
        return `${base}?restype=container&comp=list&maxresults=${limit}&prefix=${escapePart(prefix)}${marker}`;
      },
      parse: (xml) => ({ names: elements(xml, "Name"), next: element(xml, "NextMarker") || null }),
    },
  };
}

export function signed(
  account: string,
  request: HttpRequest,
  credentials: AzureCredentials,
  time: Date,
): HttpRequest {
  const headers = { ...request.headers, "x-ms-date": time.toUTCString(), "x-ms-version": VERSION };
  if ("sasToken" in credentials) {
    const join = request.url.includes("?") ? "&" : "?";
    return { ...request, headers, url: request.url + join + credentials.sasToken.replace(/^\?/, "") };
  }
  if (!("bearerToken" in credentials || "accountKey" in credentials))
    throw new Error("accountKey, sasToken or bearerToken is required");
  const authorization =
    "bearerToken" in credentials
      ? `Bearer ${credentials.bearerToken}`
      : `SharedKey ${account}:${signature(account, credentials.accountKey, { ...request, headers })}`;
  return { ...request, headers: { ...headers, authorization } };
}

/** The lines that "Shared Key" wants signed, in its order; most of these headers are never used here. */
function signature(account: string, accountKey: string, { method, url, headers, body }: HttpRequest): string {
  const { "content-type": type = "", "if-match": ifMatch = "", "if-none-match": ifNoneMatch = "" } = headers;
  const own = Object.keys(headers).filter((name) => name.startsWith("x-ms-"));
  const ownLines = own.sort().map((name) => `${name}:${headers[name]}`);
  const { pathname, searchParams } = new URL(url);
  searchParams.sort();
  const parameters = [...searchParams].map(([name, value]) => `\n${name}:${value}`).join("");
  const text =
    `${method}\n\n\n${body?.byteLength || ""}\n\n${type}\n\n\n${ifMatch}\n${ifNoneMatch}\n\n\n` +
    `${ownLines.join("\n")}\n/${account}${pathname}${parameters}`;
  return createHmac("sha256", Buffer.from(accountKey, "base64")).update(text).digest("base64");
}

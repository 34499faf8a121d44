/** From a URL and the environment to a place. A wrong value is told at once, with its name. */
import { StoreError } from "../../store/index.ts";
import type { AzurePlace } from "./azure.ts";
import type { EtagPlace } from "./etag-http.ts";
import type { S3Place } from "./s3.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

const DEFAULT_PREFIX = "leases/";
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/;
const MAX_PREFIX_LENGTH = 180;

export function problem(message: string): StoreError {
  return new StoreError("config", message, { outcome: "not-applied" });
}

export interface PrefixedPlace<Place> {
  readonly place: Place;
  readonly prefix: string;
}

/** `s3://bucket/prefix?endpoint=http://host:port&region=name`; credentials from the environment. */
export function parseS3Url(text: string, variables: Variables): PrefixedPlace<S3Place> {
  const url = urlOf(text, "s3://bucket/prefix?endpoint=http://host:port&region=us-east-1");
  assertKnown(url, ["endpoint", "region"], "s3");
  const bucket = bucketOf(url, "s3");
  const endpoint = url.searchParams.get("endpoint") ?? variables.AWS_ENDPOINT_URL_S3 ?? null;
  const region = url.searchParams.get("region") ?? variables.AWS_REGION ?? "us-east-1";
  const accessKeyId = variables.AWS_ACCESS_KEY_ID;
  const secretAccessKey = variables.AWS_SECRET_ACCESS_KEY;
  const sessionToken = variables.AWS_SESSION_TOKEN;
  if (!accessKeyId || !secretAccessKey)
    throw problem("s3: there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) };
  if (endpoint !== null) assertEndpoint(endpoint, "s3");
  return { place: { bucket, region, endpoint, credentials }, prefix: prefixOf(url, "s3") };
}

/** `azblob://container/prefix?endpoint=http://host:port/account`; account and key from the environment. */
export function parseAzureUrl(text: string, variables: Variables): PrefixedPlace<AzurePlace> {
  const url = urlOf(text, "azblob://container/prefix");
  assertKnown(url, ["endpoint"], "azblob");
  const container = bucketOf(url, "azblob");
  const account = variables.AZURE_STORAGE_ACCOUNT;
  const accountKey = variables.AZURE_STORAGE_KEY;
  if (!account || !accountKey)
    throw problem("azblob: there are no credentials: set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY");
  const endpoint = url.searchParams.get("endpoint") ?? `https://${account}.blob.core.windows.net`;
  assertEndpoint(endpoint, "azblob");
  return { place: { container, account, accountKey, endpoint }, prefix: prefixOf(url, "azblob") };
}

/** What the messages show: no user, no password. */
function hidden(text: string): string {
  return text.replace(/\/\/[^/]*@/, "//***@");
}

function urlOf(text: string, example: string): URL {
  try {
    return new URL(text);
  } catch {
    throw problem(`the URL must look like ${example}, got '${hidden(text)}'`);
  }
}

function bucketOf(url: URL, scheme: string): string {
  if (url.username !== "" || url.password !== "")
    throw problem(`${scheme}: the URL must not carry credentials: put them into the environment`);
  // A scheme that URL does not know keeps the case of its host.
  const bucket = url.host;
  if (BUCKET.test(bucket)) return bucket;
  const what = scheme === "s3" ? "bucket" : "container";
  throw problem(
    `${scheme}: the URL must name a ${what}, as in ${scheme}://my-${what}/leases, got '${hidden(url.href)}'`,
  );
}

/** The path without its first slash; `leases/` when there is none. */
function prefixOf(url: URL, scheme: string): string {
  const path = url.pathname.replace(/^\//, "");
  return assertPrefix(path === "" ? DEFAULT_PREFIX : decodeURIComponent(path), scheme);
}

export function assertPrefix(prefix: string, scheme: string): string {
  const sound = prefix.split("/").every((part, index, all) => {
    if (part === "") return index === all.length - 1;
    return /^[A-Za-z0-9_.-]+$/.test(part) && !part.startsWith(".");
  });
  if (sound && prefix.length <= MAX_PREFIX_LENGTH) return prefix;
  throw problem(
    `${scheme}: the prefix may have ${MAX_PREFIX_LENGTH} letters, digits and _ - . / without empty or dot segments, got '${prefix}'`,
  );
}

/** `https+etag://user:password@host/path/`, or `http+etag:` without TLS. */
export function parseEtagUrl(text: string): EtagPlace {
  const example = "https+etag://host/path/";
  const url = urlOf(text.replace(/\+etag:/i, ":"), example);
  if (!/^https?\+etag:/i.test(text))
    throw problem(`the URL must look like ${example}, got '${hidden(text)}'`);
  const { username, password } = url;
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers: Record<string, string> =
    username === "" ? {} : { authorization: `Basic ${Buffer.from(login).toString("base64")}` };
  return { base: `${url.origin}${url.pathname}`, headers };
}

function assertEndpoint(endpoint: string, scheme: string): void {
  if (/^https?:\/\/[^\s?#]+$/.test(endpoint) && URL.canParse(endpoint)) return;
  throw problem(`${scheme}: endpoint must look like https://host:port, got '${hidden(endpoint)}'`);
}

function assertKnown(url: URL, names: readonly string[], scheme: string): void {
  for (const name of url.searchParams.keys()) {
    if (names.includes(name)) continue;
    throw problem(`${scheme}: the URL has the unknown option '${name}': use ${names.join(" or ")}`);
  }
}

/** From a URL and the environment to a place. Each wrong value has an error of its own that names it. */
import { awsCredentialsFrom } from "../support/aws-signing.ts";
import {
  assertEndpoint,
  assertRegion,
  configError,
  decodedPart,
  urlParameters,
  withoutPassword,
} from "../support/options.ts";
import type { AzureCredentials, AzurePlace } from "./azure.ts";
import type { EtagPlace } from "./etag-http.ts";
import type { S3Place } from "./s3.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/** Where the objects lie, each with all that is needed to reach it. */
export type ObjectPlace =
  | ({ readonly kind: "s3" } & S3Place)
  | ({ readonly kind: "azblob" } & AzurePlace)
  | ({ readonly kind: "https+etag" } & EtagPlace);

export interface ParsedUrl {
  readonly place: ObjectPlace;
  readonly prefix: string;
  readonly clockSkewMs?: number;
}

export const DEFAULT_PREFIX = "leases/";
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/;
const MAX_PREFIX_LENGTH = 180;
const EXAMPLES =
  "s3://bucket/prefix?endpoint=http://host:port, azblob://container/prefix or https+etag://host/path/";

export function parseObjectUrl(text: string, variables: Variables): ParsedUrl {
  const scheme = /^(s3|azblob|https?\+etag):/i.exec(text)?.[1]?.toLowerCase();
  // Without `+etag` it is a scheme that URL knows, so host, port and path are checked.
  const plain = text.replace(/\+etag:/i, ":");
  if (scheme === undefined || !URL.canParse(plain))
    throw configError(`the URL must look like ${EXAMPLES}, got '${withoutPassword(text)}'`);
  const url = new URL(plain);
  if (scheme === "s3") return parseS3(url, variables);
  return scheme === "azblob" ? parseAzure(url, variables) : parseEtag(url);
}

/** `s3://bucket/prefix?endpoint=http://host:port&region=name`; credentials from the environment. */
function parseS3(url: URL, variables: Variables): ParsedUrl {
  const { endpoint, region, ...skew } = urlParameters("s3", url, ["endpoint", "region", "clockSkewMs"]);
  const bucket = bucketOf(url, "s3", "bucket");
  const own = endpoint ?? variables.AWS_ENDPOINT_URL_S3;
  const place: S3Place = {
    bucket,
    region: assertRegion("s3", region ?? variables.AWS_REGION ?? "us-east-1"),
    endpoint: own === undefined ? null : assertEndpoint("s3", own),
    credentials: awsCredentialsFrom("s3", variables),
  };
  return { place: { kind: "s3", ...place }, prefix: prefixOf(url, "s3"), ...skewIn(skew) };
}

/** `azblob://container/prefix?endpoint=http://host:port/account`; account and key or SAS from the environment. */
function parseAzure(url: URL, variables: Variables): ParsedUrl {
  const { endpoint, ...skew } = urlParameters("azblob", url, ["endpoint", "clockSkewMs"]);
  const container = bucketOf(url, "azblob", "container");
  const account = variables.AZURE_STORAGE_ACCOUNT;
  const accountKey = variables.AZURE_STORAGE_KEY;
  const sasToken = variables.AZURE_STORAGE_SAS_TOKEN;
  if (!account || !(accountKey || sasToken))
    throw configError(
      "azblob: there are no credentials: set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
    );
  const credentials: AzureCredentials = accountKey ? { accountKey } : { sasToken: sasToken ?? "" };
  const place: AzurePlace = {
    container,
    account,
    credentials,
    endpoint: assertEndpoint("azblob", endpoint ?? `https://${account}.blob.core.windows.net`),
  };
  return { place: { kind: "azblob", ...place }, prefix: prefixOf(url, "azblob"), ...skewIn(skew) };
}

/** `https+etag://user:password@host/path/`, or `http+etag:` without TLS. */
function parseEtag(url: URL): ParsedUrl {
  const skew = urlParameters("https+etag", url, ["clockSkewMs"]);
  const decoded = (name: string, text: string): string => decodedPart("https+etag", name, text);
  const login = `${decoded("user", url.username)}:${decoded("password", url.password)}`;
  const headers: Record<string, string> =
    url.username === "" ? {} : { authorization: `Basic ${Buffer.from(login).toString("base64")}` };
  const place: EtagPlace = { base: `${url.origin}${url.pathname}`, headers };
  return { place: { kind: "https+etag", ...place }, prefix: DEFAULT_PREFIX, ...skewIn(skew) };
}

function skewIn({ clockSkewMs }: Variables): { readonly clockSkewMs?: number } {
  return clockSkewMs === undefined ? {} : { clockSkewMs: Number(clockSkewMs || "?") };
}

function bucketOf(url: URL, scheme: string, what: string): string {
  if (url.username !== "" || url.password !== "")
    throw configError(`${scheme}: the URL must not carry credentials: put them into the environment`);
  // A scheme that URL does not know keeps the case of its host.
  if (BUCKET.test(url.host)) return url.host;
  throw configError(
    `${scheme}: the URL must name a ${what} of 2 to 63 letters, digits or '.', '_', '-', as in ${scheme}://my-${what}/leases, got '${withoutPassword(url.href)}'`,
  );
}

/** The path without its first slash; `leases/` when there is none. */
function prefixOf(url: URL, scheme: string): string {
  const path = url.pathname.replace(/^\//, "");
  return assertPrefix(path === "" ? DEFAULT_PREFIX : decodedPart(scheme, "prefix", path), scheme);
}

export function assertPrefix(prefix: string, scheme: string): string {
  const sound = prefix.split("/").every((part, index, all) => {
    if (part === "") return index === all.length - 1;
    return /^[A-Za-z0-9_.-]+$/.test(part) && !part.startsWith(".");
  });
  if (sound && prefix.length <= MAX_PREFIX_LENGTH) return prefix;
  throw configError(
    `${scheme}: the prefix may have up to ${MAX_PREFIX_LENGTH} letters, digits and _ - . / without empty or dot segments, got '${prefix}'`,
  );
}

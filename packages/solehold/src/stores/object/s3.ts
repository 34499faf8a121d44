/**
 * S3 and servers that speak its protocol. Requests are signed by aws4fetch; path style with an endpoint of
 * one's own, virtual-host style on AWS.
 */
import { createHash } from "node:crypto";
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import type { Dialect, Headers, UnsignedRequest } from "./dialect.ts";
import { escapePart, escapePath } from "./names.ts";
import { element, elements } from "./xml.ts";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Place {
  readonly bucket: string;
  readonly region: string;
  /** Null for AWS itself. */
  readonly endpoint: string | null;
  readonly credentials: S3Credentials;
}

/** Rejects with a StoreError "config" when the package aws4fetch is missing. */
export async function s3Dialect(place: S3Place, env: Env): Promise<Dialect> {
  const sign = await loadSigner(place, env);
  const base =
    place.endpoint === null
      ? `https://${place.bucket}.s3.${place.region}.amazonaws.com`
      : `${place.endpoint.replace(/\/$/, "")}/${escapePart(place.bucket)}`;
  return {
    words: {
      place: `S3 bucket '${place.bucket}' at ${new URL(base).origin}`,
      errorCodeOf: (reply) => element(reply.body.toString("utf8"), "Code") ?? "",
      credentialsAdvice: "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy",
      placeAdvice: "create the bucket or correct its name in the URL",
    },
    metadataPrefix: "x-amz-meta-",
    putHeaders: {},
    urlOf: (name) => `${base}/${escapePath(name)}`,
    signed: sign,
    listUrl: (prefix, after) => {
      const token = after === null ? "" : `continuation-token=${escapePart(after)}&`;
      return `${base}/?${token}encoding-type=url&list-type=2&prefix=${escapePart(prefix)}`;
    },
    parseList: (xml) => {
      const more = element(xml, "IsTruncated") === "true";
      return {
        names: elements(xml, "Key").map((key) => decodeURIComponent(key.replace(/\+/g, " "))),
        next: more ? element(xml, "NextContinuationToken") : null,
      };
    },
  };
}

async function loadSigner({ region, credentials }: S3Place, env: Env): Promise<Dialect["signed"]> {
  const { AwsV4Signer } = await loadAws4fetch();
  // Signing keys hold for a day and are kept, as deriving one takes four rounds of HMAC.
  const cache = new Map<string, ArrayBuffer>();
  return async ({ method, url, headers, body }: UnsignedRequest): Promise<Headers> => {
    const hash = createHash("sha256")
      .update(body ?? "")
      .digest("hex");
    const signer = new AwsV4Signer({
      ...credentials,
      method,
      url,
      headers: { ...headers, "x-amz-content-sha256": hash },
      datetime: new Date(env.wallMs()).toISOString().replace(/[-:]|\.\d+/g, ""),
      region,
      service: "s3",
      cache,
    });
    return Object.fromEntries((await signer.sign()).headers.entries());
  };
}

async function loadAws4fetch(): Promise<typeof import("aws4fetch")> {
  try {
    return await import("aws4fetch");
  } catch (cause) {
    const message = "s3: needs the package aws4fetch: npm install aws4fetch";
    throw new StoreError("config", message, { outcome: "not-applied", cause });
  }
}

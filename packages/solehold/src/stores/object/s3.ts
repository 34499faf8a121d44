/**
 * S3 and servers that speak its protocol. Requests are signed by aws4fetch; path style with an endpoint of
 * one's own, virtual-host style on AWS.
 */
import { createHash } from "node:crypto";
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import type { CredentialSource, Expiring } from "../support/expiring-credentials.ts";
import type { HttpOptions, HttpReply } from "./http.ts";
import { escapePart, escapePath } from "./names.ts";
import { EXPIRED_TOKEN, type Protocol } from "./protocol.ts";
import { SignedHttp, type Signing } from "./signed-http.ts";
import { element, elements } from "./xml.ts";

export interface S3Credentials extends Expiring {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Place {
  readonly bucket: string;
  readonly region: string;
  /** Null for AWS itself. */
  readonly endpoint: string | null;
  /** A function for those that expire: roles of EC2, ECS, EKS. */
  readonly credentials: CredentialSource<S3Credentials>;
}

/** Rejects with a StoreError "config" when the package aws4fetch is missing. */
export async function s3Protocol(
  { bucket, region, endpoint, credentials }: S3Place,
  options: Omit<HttpOptions, "place">,
): Promise<Protocol> {
  const base =
    endpoint === null
      ? `https://${bucket}.s3.${region}.amazonaws.com`
      : `${endpoint.replace(/\/$/, "")}/${escapePart(bucket)}`;
  const place = `S3 bucket '${bucket}' at ${new URL(base).origin}`;
  const errorCodeOf = (reply: HttpReply): string => element(reply.body.toString("utf8"), "Code") ?? "";
  const signing: Signing<S3Credentials> = {
    source: credentials,
    sign: await loadSigner(region, options.env),
    hasExpired: (reply) => EXPIRED_TOKEN.test(errorCodeOf(reply)),
  };
  return {
    place,
    http: new SignedHttp(signing, { ...options, place }),
    credentialsAdvice: "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy",
    placeAdvice: "create the bucket or correct its name in the URL",
    metadataPrefix: "x-amz-meta-",
    putHeaders: {},
    errorCodeOf,
    urlOf: (name) => `${base}/${escapePath(name)}`,
    listing: {
      url: (prefix, after, limit) => {
        const token = after === null ? "" : `continuation-token=${escapePart(after)}&`;
        return `${base}/?${token}encoding-type=url&list-type=2&max-keys=${limit}&prefix=${escapePart(prefix)}`;
      },
      parse: (xml) => ({
        names: elements(xml, "Key").map((key) => decodeURIComponent(key.replace(/\+/g, " "))),
        next: element(xml, "IsTruncated") === "true" ? element(xml, "NextContinuationToken") : null,
      }),
    },
  };
}

async function loadSigner(region: string, env: Env): Promise<Signing<S3Credentials>["sign"]> {
  const { AwsV4Signer } = await loadAws4fetch();
  // Signing keys hold for a day and are kept, as deriving one takes four rounds of HMAC.
  const cache = new Map<string, ArrayBuffer>();
  return async (request, { accessKeyId, secretAccessKey, sessionToken }) => {
    if (cache.size > 16) cache.clear();
    const hash = createHash("sha256").update(request.body ?? "");
    const signer = new AwsV4Signer({
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      method: request.method,
      url: request.url,
      headers: { ...request.headers, "x-amz-content-sha256": hash.digest("hex") },
      datetime: new Date(env.wallMs()).toISOString().replace(/[-:]|\.\d+/g, ""),
      region,
      service: "s3",
      cache,
    });
    return { ...request, headers: Object.fromEntries((await signer.sign()).headers.entries()) };
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

/**
 * S3 and servers that speak its protocol. Requests are signed; path style with an endpoint of one's own, virtual-host
 * style on AWS.
 */
import { type AwsCredentials, awsSigning } from "../support/aws-signing.ts";
import type { CredentialSource } from "../support/expiring-credentials.ts";
import type { HttpOptions, HttpReply } from "../support/http.ts";
import { SignedHttp } from "../support/signed-http.ts";
import { escapePart, escapePath } from "./names.ts";
import { EXPIRED_TOKEN, type Protocol } from "./protocol.ts";
import { element, elements } from "./xml.ts";

export interface S3Place {
  readonly bucket: string;
  readonly region: string;
  /** Null for AWS itself. */
  readonly endpoint: string | null;
  /** A function for those that expire: roles of EC2, ECS, EKS. */
  readonly credentials: CredentialSource<AwsCredentials>;
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
  const isRefused = (reply: HttpReply): boolean => {
    const code = errorCodeOf(reply);
    return EXPIRED_TOKEN.test(code) || code === "RequestTimeTooSkewed";
  };
  const signing = await awsSigning({ service: "s3", region, credentials, isRefused, env: options.env });
  return {
    place,
    http: new SignedHttp(signing, { ...options, place }),
    credentialsAdvice: "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy",
    placeAdvice: "create the bucket or correct its name in the URL",
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

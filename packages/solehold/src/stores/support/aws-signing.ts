/**
 * Requests signed for AWS (signature version 4), by aws4fetch. A signature carries the time, and AWS refuses one that is
 * some minutes old: where this machine's clock is wrong, the server's counts.
 */
import { createHash } from "node:crypto";
import type { Env } from "../../env/index.ts";
import type { CredentialSource, Expiring } from "./expiring-credentials.ts";
import type { HttpReply } from "./http.ts";
import { configError, loadPackage } from "./options.ts";
import type { Signing } from "./signed-http.ts";

export interface AwsCredentials extends Expiring {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface AwsSigningOptions {
  readonly service: "s3" | "dynamodb";
  readonly region: string;
  /** A function for those that expire: roles of EC2, ECS, EKS. */
  readonly credentials: CredentialSource<AwsCredentials>;
  readonly isRefused: (reply: HttpReply) => boolean;
  readonly env: Env;
}

const CLOCK_OFF_MS = 60_000;

/** Rejects with a StoreError "config" when the package aws4fetch is missing. */
export async function awsSigning(options: AwsSigningOptions): Promise<Signing<AwsCredentials>> {
  const { service, region, credentials, isRefused, env } = options;
  const { AwsV4Signer } = await loadPackage(service, "aws4fetch", () => import("aws4fetch"));
  // Signing keys hold for a day and are kept, as deriving one takes four rounds of HMAC.
  const cache = new Map<string, ArrayBuffer>();
  let clockOffMs = 0;
  return {
    source: credentials,
    isRefused,
    correctClock: (serverMs) => {
      const offMs = serverMs === null ? 0 : serverMs - env.wallMs();
      const isCorrected = Math.abs(offMs - clockOffMs) > CLOCK_OFF_MS;
      if (isCorrected) clockOffMs = offMs;
      return isCorrected;
    },
    sign: async (request, { accessKeyId, secretAccessKey, sessionToken }) => {
      if (cache.size > 16) cache.clear();
      const hash = createHash("sha256").update(request.body ?? "");
      const signer = new AwsV4Signer({
        ...{ accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
        ...{ method: request.method, url: request.url, service, region, cache },
        headers: { ...request.headers, "x-amz-content-sha256": hash.digest("hex") },
        datetime: new Date(env.wallMs() + clockOffMs).toISOString().replace(/[-:]|\.\d+/g, ""),
      });
      return { ...request, headers: Object.fromEntries((await signer.sign()).headers.entries()) };
    },
  };
}

/** Throws where the environment has none. */
export function awsCredentialsFrom(
  engine: string,
  variables: Readonly<Record<string, string | undefined>>,
): AwsCredentials {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = variables;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY)
    throw configError(
      `${engine}: there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass them`,
    );
  const sessionToken = AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {};
  return { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY, ...sessionToken };
}

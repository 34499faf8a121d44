/** The shared servers as places: buckets and containers that nobody else uses. */
import { createHash } from "node:crypto";
import { signed } from "../../../src/stores/object/azure.ts";
import type { AwsCredentials, ObjectPlace } from "../../../src/stores/object/index.ts";
import { engineRecord } from "../../engines/index.ts";

export type CephPlace = Extract<ObjectPlace, { kind: "s3" }> & { readonly credentials: AwsCredentials };
export type AzuritePlace = Extract<ObjectPlace, { kind: "azblob" }>;

type Server = Pick<ReturnType<typeof engineRecord>, "url" | "credentials">;

export function cephPlace({ url, credentials }: Server = engineRecord("ceph")): CephPlace {
  const { accessKeyId = "", secretAccessKey = "", region = "", bucket = "" } = credentials;
  return { kind: "s3", bucket, region, endpoint: url, credentials: { accessKeyId, secretAccessKey } };
}

/** Makes the container, too. */
export async function azuritePlace(server: Server = engineRecord("azurite")): Promise<AzuritePlace> {
  const { account = "", accountKey = "" } = server.credentials;
  const container = `kit-${createHash("sha256").update(`${process.pid} ${Date.now()}`).digest("hex").slice(0, 12)}`;
  const credentials = { accountKey };
  const request = signed(
    account,
    { method: "PUT", url: `${server.url}/${container}?restype=container`, headers: {} },
    credentials,
    new Date(),
  );
  const reply = await fetch(request.url, request);
  if (reply.status !== 201) throw new Error(`the container was not made: HTTP ${reply.status}`);
  return { kind: "azblob", container, account, credentials, endpoint: server.url };
}

/** A prefix of this run alone: the bucket is shared. */
export function freshPrefix(): string {
  return `test-${process.pid}-${Date.now()}-${Math.floor(Math.random() * 1e9)}/`;
}

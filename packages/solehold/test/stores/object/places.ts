/** The shared servers as places: buckets and containers that nobody else uses. */
import { createHash } from "node:crypto";
import { realEnv } from "../../../src/env/index.ts";
import { azureDialect } from "../../../src/stores/object/azure.ts";
import type { ObjectPlace } from "../../../src/stores/object/index.ts";
import { engineRecord } from "../../engines/index.ts";

export type CephPlace = Extract<ObjectPlace, { kind: "s3" }>;
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
  const place: AzuritePlace = { kind: "azblob", container, account, accountKey, endpoint: server.url };
  const url = `${server.url}/${container}?restype=container`;
  const headers = await azureDialect(place, realEnv).signed({
    method: "PUT",
    url,
    headers: {},
    body: undefined,
  });
  const reply = await fetch(url, { method: "PUT", headers });
  if (reply.status !== 201) throw new Error(`the container was not made: HTTP ${reply.status}`);
  return place;
}

/** A prefix of this run alone: the bucket is shared. */
export function freshPrefix(): string {
  return `test-${process.pid}-${Date.now()}-${Math.floor(Math.random() * 1e9)}/`;
}

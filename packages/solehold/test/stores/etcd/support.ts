/** The clusters of the tests, and looking into them behind the store's back, through etcd's HTTP gateway. */
import { randomBytes } from "node:crypto";
import { keyId, type LeaseKey } from "../../../src/core/index.ts";

/** A prefix that no other test uses: the cluster is shared. */
export function newPrefix(): string {
  return `test-${randomBytes(8).toString("hex")}`;
}

/** The store's URL of members that are known by their HTTP URLs. */
export function storeUrl(urls: readonly string[], prefix: string, options = ""): string {
  return `etcd://${urls.map((url) => new URL(url).host).join(",")}/${prefix}${options}`;
}

export async function gateway(url: string, path: string, body: object, token?: string): Promise<unknown> {
  const headers = token === undefined ? {} : { authorization: token };
  const reply = await fetch(`${url}/v3/${path}`, { method: "POST", body: JSON.stringify(body), headers });
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
  return reply.json();
}

export const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Overwrites what is stored there. */
export async function putRaw(url: string, prefix: string, key: LeaseKey, value: string): Promise<void> {
  await gateway(url, "kv/put", { key: base64(`${prefix}/${keyId(key)}`), value: base64(value) });
}

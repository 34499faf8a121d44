/** The clusters of the tests, and looking into them behind the store's back, through etcd's HTTP gateway. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { keyId, type LeaseKey } from "../../../src/core/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { startEtcd } from "../../engines/index.ts";

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

export interface Guarded {
  /** HTTP URL of the only member. */
  readonly url: string;
  stop(): Promise<void>;
  restart(): Promise<void>;
}

/** A cluster of one that asks for passwords: root, `keeper` who may write under a prefix, and `reader` who may not. */
export async function startGuarded(prefix: string): Promise<Guarded> {
  const engine = await startEtcd({ members: 1 });
  const { url } = engine;
  const range = { key: base64(`${prefix}/`), range_end: base64(`${prefix}0`) };
  const roles = { root: null, keeper: "READWRITE", reader: "READ" };
  for (const [name, permType] of Object.entries(roles)) {
    await gateway(url, "auth/user/add", { name, password: "s3cret" });
    await gateway(url, "auth/role/add", { name });
    if (permType !== null) await gateway(url, "auth/role/grant", { name, perm: { permType, ...range } });
    await gateway(url, "auth/user/grant", { user: name, role: name });
  }
  await gateway(url, "auth/enable", {});
  return engine;
}

/** A certificate for loopback, in files that `remove` deletes. */
export async function certificate(): Promise<{ cert: string; key: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), "solehold-etcd-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  await promisify(execFile)("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    ...["-keyout", key, "-out", cert],
  ]);
  return { cert, key, remove: () => rmSync(folder, { recursive: true }) };
}

/** Events as they come; `next` waits for one that fits, also among those that came already. */
export class Ear {
  readonly heard: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  readonly listen = (event: StoreEvent): void => {
    this.heard.push(event);
    this.#wake();
  };

  get resets(): number {
    return this.heard.filter(({ kind }) => kind === "reset").length;
  }

  async next(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    for (;;) {
      const event = this.heard.find(fits);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The write with this nonce. */
  async write(nonce: string): Promise<StoreEvent> {
    return this.next((event) => event.kind === "changed" && event.record?.nonce === nonce);
  }
}

/** The revision at which the cluster is. */
export async function revisionAt(url: string): Promise<number> {
  const { header } = (await gateway(url, "maintenance/status", {})) as { header: { revision: string } };
  return Number(header.revision);
}

const PATIENCE_MS = 30_000;

/** Waits for something that only asking can tell: elections and busy machines take their time. */
export async function until<Value>(what: string, probe: () => Promise<Value | null>): Promise<Value> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await probe().catch(() => null);
    if (value !== null) return value;
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

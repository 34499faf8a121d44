/** The clusters of the tests, and looking into them behind the store's back, through etcd's HTTP gateway. */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server as TlsServer } from "node:tls";
import { promisify } from "node:util";
import { keyId, type LeaseKey } from "../../../src/core/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { type EtcdStore, type EtcdStoreOptions, openEtcdStore } from "../../../src/stores/etcd/index.ts";
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
  await askForUsers(engine.url, prefix, { password: "s3cret" });
  return engine;
}

async function askForUsers(url: string, prefix: string, login: object): Promise<void> {
  const range = { key: base64(`${prefix}/`), range_end: base64(`${prefix}0`) };
  const roles = { root: null, keeper: "READWRITE", reader: "READ" };
  for (const [name, permType] of Object.entries(roles)) {
    await gateway(url, "auth/user/add", { name, ...login });
    await gateway(url, "auth/role/add", { name });
    if (permType !== null) await gateway(url, "auth/role/grant", { name, perm: { permType, ...range } });
    await gateway(url, "auth/user/grant", { user: name, role: name });
  }
  await gateway(url, "auth/enable", {});
}

/** The same on `https`, for users who have no password but a certificate. */
export async function startCertified(
  prefix: string,
  { files, folder }: Certificates,
): Promise<{ readonly host: string; stop(): Promise<void> }> {
  const [plain, secure, peer] = [await freePort(), await freePort(), await freePort()];
  const [url, host] = [`http://127.0.0.1:${plain}`, `127.0.0.1:${secure}`];
  const member = spawn(
    "etcd",
    [
      ...["--data-dir", join(folder, "data"), "--log-level", "error", "--logger", "zap"],
      ...["--listen-client-urls", `${url},https://${host}`, "--advertise-client-urls", `https://${host}`],
      ...["--listen-peer-urls", `http://127.0.0.1:${peer}`],
      ...["--initial-advertise-peer-urls", `http://127.0.0.1:${peer}`],
      ...["--initial-cluster", `default=http://127.0.0.1:${peer}`],
      ...["--cert-file", files.cert, "--key-file", files.key],
      ...["--client-cert-auth", "--trusted-ca-file", files.ca],
    ],
    { stdio: "ignore" },
  );
  const ended = once(member, "exit");
  await until("etcd answers", () => gateway(url, "maintenance/status", {}));
  await askForUsers(url, prefix, { options: { no_password: true } });
  const stop = async (): Promise<void> => {
    member.kill("SIGKILL");
    await ended;
  };
  return { host, stop };
}

export async function freePort(): Promise<number> {
  const listener = createTcpServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

/** Runs openssl in a folder of its own. */
const openssl = (cwd: string, ...args: readonly string[]) => promisify(execFile)("openssl", args, { cwd });
const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export interface Certificates {
  /** Of an authority, of a server on loopback, and of a client named `keeper`. */
  readonly files: Readonly<Record<"ca" | "cert" | "key" | "clientCert" | "clientKey", string>>;
  /** Where they are. It goes with them. */
  readonly folder: string;
  remove(): void;
}

export async function certificates(): Promise<Certificates> {
  const folder = mkdtempSync(join(tmpdir(), "solehold-etcd-"));
  await openssl(
    folder,
    ...["req", "-x509", ...NEW_KEY, "-days", "2", "-subj", "/CN=authority"],
    ...["-keyout", "ca.key", "-out", "ca.pem"],
  );
  writeFileSync(join(folder, "names"), "subjectAltName=DNS:localhost,IP:127.0.0.1");
  for (const name of ["localhost", "keeper"]) {
    await openssl(
      folder,
      ...["req", ...NEW_KEY, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`],
    );
    await openssl(
      folder,
      ...["x509", "-req", "-in", `${name}.csr`, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"],
      ...["-days", "2", "-extfile", "names", "-out", `${name}.pem`],
    );
  }
  const at = (file: string): string => join(folder, file);
  const server = { ca: at("ca.pem"), cert: at("localhost.pem"), key: at("localhost.key") };
  const files = { ...server, clientCert: at("keeper.pem"), clientKey: at("keeper.key") };
  return { files, folder, remove: () => rmSync(folder, { recursive: true }) };
}

/** A way to a server that speaks TLS in front, to clients with a certificate of the authority only if `clients` says so. */
export function tlsInFront(
  url: string,
  { files }: Certificates,
  clients: "anybody" | "certified",
): TlsServer {
  const [cert, key, ca] = [files.cert, files.key, files.ca].map((file) => readFileSync(file));
  const requestCert = clients === "certified";
  return createServer({ cert, key, ca, requestCert, ALPNProtocols: ["h2"] }, (near) => {
    const far = connect(Number(new URL(url).port), "127.0.0.1");
    near.on("error", () => far.destroy()).pipe(far);
    far.on("error", () => near.destroy()).pipe(near);
  });
}

/** Events as they come; `next` waits for one that fits, also among those that came already. */
export class EventLog {
  readonly events: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  readonly listener = (event: StoreEvent): void => {
    this.events.push(event);
    this.#wake();
  };

  get resets(): number {
    return this.events.filter(({ kind }) => kind === "reset").length;
  }

  async next(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    for (;;) {
      const event = this.events.find(fits);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The write with this nonce. */
  async write(nonce: string): Promise<StoreEvent> {
    return this.next((event) => nonceIn(event) === nonce);
  }
}

/** Of the record in it; null where there is none. */
export function nonceIn(event: StoreEvent): string | null {
  const stored = event.kind === "changed" ? event.stored : null;
  return stored?.kind === "found" ? stored.record.nonce : null;
}

/** The revision at which the cluster is. */
export async function revisionAt(url: string): Promise<number> {
  const { header } = (await gateway(url, "maintenance/status", {})) as { header: { revision: string } };
  return Number(header.revision);
}

const LIMIT_MS = 120_000;

/** Waits for something that only asking can tell: elections and busy machines take their time. */
export async function until<Value>(what: string, probe: () => Promise<Value | null>): Promise<Value> {
  const deadlineMs = performance.now() + LIMIT_MS;
  for (;;) {
    const value = await probe().catch(() => null);
    if (value !== null) return value;
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${LIMIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A store that has short timeouts, on a machine that may be too busy for them when it is opened. */
export function opened(options: EtcdStoreOptions): Promise<EtcdStore> {
  return until("the store opens", () => openEtcdStore(options));
}

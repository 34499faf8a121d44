/** From a URL to Leases: the scheme chooses the store. Store clients load only when their scheme is used. */
import { hostname } from "node:os";
import type { DriftBound, LeasePolicy } from "../core/index.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import { type LeaseManager, StoreLeaseManager } from "../manager/index.ts";
import { type LeaseStore, MemoryStore } from "../stores/index.ts";
import { Leases } from "./leases.ts";

export interface ConnectOptions {
  readonly tenant?: string;
  /** Shown to others as the holder. Default: host name, process id and a random part. */
  readonly holder?: string;
  readonly policy?: Partial<LeasePolicy>;
  readonly drift?: DriftBound;
  readonly env?: Env;
  /** For a Solehold server that asks for one. Default: the environment variable SOLEHOLD_API_KEY. */
  readonly apiKey?: string;
}

type OpenStore = (url: string, options: ConnectOptions) => Promise<LeaseStore>;

const SCHEMES: Readonly<Record<string, OpenStore>> = {
  memory: async (_url, { env }) => new MemoryStore(envOf(env)),
  embedded: async (url, { env }) => {
    const folder = pathOf(url, "embedded");
    const { openEmbeddedStore } = await import("../stores/embedded/index.ts");
    return await openEmbeddedStore({ folder, ...envOf(env) });
  },
  file: async (url, { env }) => {
    const folder = pathOf(url, "file");
    const { openFileStore } = await import("../stores/file/index.ts");
    return await openFileStore({ folder, ...envOf(env) });
  },
  redis: openRedis,
  rediss: openRedis,
  postgres: openPostgres,
  postgresql: openPostgres,
  nats: openNats,
  "nats+tls": openNats,
  etcd: openEtcd,
  etcds: openEtcd,
  s3: openObjects,
  azblob: openObjects,
  "https+etag": openObjects,
  "http+etag": openObjects,
};

async function openRedis(url: string, { env }: ConnectOptions): Promise<LeaseStore> {
  const { openRedisStore } = await import("../stores/redis/index.ts");
  return await openRedisStore({ url, ...envOf(env) });
}

async function openPostgres(url: string, { env }: ConnectOptions): Promise<LeaseStore> {
  const { openPostgresStore } = await import("../stores/postgres/index.ts");
  return await openPostgresStore({ url, ...envOf(env) });
}

async function openEtcd(url: string, { env }: ConnectOptions): Promise<LeaseStore> {
  const { openEtcdStore } = await import("../stores/etcd/index.ts");
  return await openEtcdStore({ url, ...envOf(env) });
}

async function openNats(url: string, { env }: ConnectOptions): Promise<LeaseStore> {
  const { openNatsStore } = await import("../stores/nats/index.ts");
  return await openNatsStore({ url, ...envOf(env) });
}

async function openObjects(url: string, { env }: ConnectOptions): Promise<LeaseStore> {
  const { openObjectStore } = await import("../stores/object/index.ts");
  return await openObjectStore({ url, ...envOf(env) });
}

function envOf(env: Env | undefined): { readonly env?: Env } {
  return env === undefined ? {} : { env };
}

export function knownSchemes(): readonly string[] {
  return [...Object.keys(SCHEMES), "http", "https"];
}

/** Opens the store of a URL such as `memory:` or `embedded:./data`. */
export async function openStore(url: string, options: ConnectOptions = {}): Promise<LeaseStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const open = scheme === undefined ? undefined : SCHEMES[scheme];
  if (open === undefined) {
    const known = knownSchemes()
      .map((name) => `${name}:`)
      .join(", ");
    const what = scheme === undefined ? "has no scheme" : `has the unknown scheme '${scheme}:'`;
    throw new RangeError(`the store URL ${what}: use one of ${known} (for example embedded:./data)`);
  }
  return await open(url, options);
}

/** The manager behind a URL: over a store, or over a Solehold server for http: and https:. */
export async function openManager(url: string, options: ConnectOptions = {}): Promise<LeaseManager> {
  const { env, policy, drift } = options;
  if (/^https?:/i.test(url)) {
    const { openRemoteManager } = await import("./remote/open.ts");
    return await openRemoteManager(url, options);
  }
  return new StoreLeaseManager({
    store: await openStore(url, options),
    ...(env === undefined ? {} : { env }),
    ...(policy === undefined ? {} : { policy }),
    ...(drift === undefined ? {} : { drift }),
  });
}

export async function connect(url: string, options: ConnectOptions = {}): Promise<Leases> {
  const { env = realEnv, tenant } = options;
  const holder = options.holder ?? defaultHolder(env);
  const manager = await openManager(url, options);
  return new Leases({ manager, env, holder, ...(tenant === undefined ? {} : { tenant }) });
}

/** Unique per process and readable: host names are cut so that the name stays within its limit. */
export function defaultHolder(env: Env): string {
  return `${hostname().slice(0, 60)}:${process.pid}:${randomId(env).slice(0, 8)}`;
}

function pathOf(url: string, scheme: string): string {
  const path = url.slice(scheme.length + 1).replace(/^\/\/(?=\/)/, "");
  if (path === "") throw new RangeError(`${scheme}: needs a folder, for example ${scheme}:./data`);
  return path;
}

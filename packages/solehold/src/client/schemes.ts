/** The schemes of store URLs, and what opens them. A store's own code loads only when its scheme is used. */
import type { Env } from "../env/index.ts";
import { type LeaseStore, MemoryStore } from "../store/index.ts";

interface OpenOptions {
  readonly env?: Env;
  /** Only for the stores of `PREFIXED`. */
  readonly prefix?: string;
}

type OpenStore = (url: string, options: OpenOptions) => Promise<LeaseStore>;

const openRedis: OpenStore = async (url, options) =>
  await (await import("../stores/redis/index.ts")).openRedisStore({ url, ...options });
const openPostgres: OpenStore = async (url, options) =>
  await (await import("../stores/postgres/index.ts")).openPostgresStore({ url, ...options });
const openMysql: OpenStore = async (url, options) =>
  await (await import("../stores/mysql/index.ts")).openMysqlStore({ url, ...options });
const openDynamodb: OpenStore = async (url, options) =>
  await (await import("../stores/dynamodb/index.ts")).openDynamodbStore({ url, ...options });
const openEtcd: OpenStore = async (url, options) =>
  await (await import("../stores/etcd/index.ts")).openEtcdStore({ url, ...options });
const openNats: OpenStore = async (url, options) =>
  await (await import("../stores/nats/index.ts")).openNatsStore({ url, ...options });
const openObjects: OpenStore = async (url, options) =>
  await (await import("../stores/object/index.ts")).openObjectStore({ url, ...options });

const SCHEMES: Readonly<Record<string, OpenStore>> = {
  memory: async (url, options) => {
    if (url.length > "memory:".length)
      throw new RangeError(`memory: has no address, got '${url}': each connection has a memory of its own`);
    return new MemoryStore(options);
  },
  embedded: async (url, options) => {
    const folder = pathOf(url, "embedded");
    return await (await import("../stores/sqlite/index.ts")).openEmbeddedStore({ folder, ...options });
  },
  file: async (url, options) => {
    const folder = pathOf(url, "file");
    return await (await import("../stores/file/index.ts")).openFileStore({ folder, ...options });
  },
  redis: openRedis,
  rediss: openRedis,
  postgres: openPostgres,
  postgresql: openPostgres,
  mysql: openMysql,
  mariadb: openMysql,
  nats: openNats,
  "nats+tls": openNats,
  etcd: openEtcd,
  etcds: openEtcd,
  s3: openObjects,
  azblob: openObjects,
  dynamodb: openDynamodb,
  "https+etag": openObjects,
  "http+etag": openObjects,
};

const PREFIXED: ReadonlySet<string> = new Set(["file", "s3", "azblob", "https+etag", "http+etag"]);

export async function openByScheme(url: string, options: OpenOptions): Promise<LeaseStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const open = scheme === undefined ? undefined : SCHEMES[scheme];
  if (open !== undefined) {
    assertPrefixed(scheme ?? "", options);
    return await open(url, options);
  }
  const known = [...Object.keys(SCHEMES), "http", "https"].map((name) => `${name}:`).join(", ");
  const what = scheme === undefined ? "has no scheme" : `has the unknown scheme '${scheme}:'`;
  throw new RangeError(`the store URL ${what}: use one of ${known} (for example embedded:./data)`);
}

function assertPrefixed(scheme: string, { prefix }: OpenOptions): void {
  if (prefix === undefined || PREFIXED.has(scheme)) return;
  throw new RangeError(
    `prefix is for ${[...PREFIXED].map((name) => `${name}:`).join(", ")}, and the store is ${scheme}: leave it out`,
  );
}

function pathOf(url: string, scheme: string): string {
  const path = url.slice(scheme.length + 1).replace(/^\/\/(?=\/)/, "");
  if (path === "") throw new RangeError(`${scheme}: needs a folder, for example ${scheme}:./data`);
  if (path.startsWith("//"))
    throw new RangeError(
      `${scheme}: has no host: write ${scheme}:./data or ${scheme}:/path/to/data, got '${url}'`,
    );
  return path;
}

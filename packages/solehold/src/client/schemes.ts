/** The schemes of store URLs, and what opens them. A store's own code loads only when its scheme is used. */
import type { Env } from "../env/index.ts";
import { type LeaseStore, MemoryStore } from "../store/index.ts";

interface WithEnv {
  readonly env?: Env;
}

type OpenStore = (url: string, env: WithEnv) => Promise<LeaseStore>;

const openRedis: OpenStore = async (url, env) =>
  await (await import("../stores/redis/index.ts")).openRedisStore({ url, ...env });
const openPostgres: OpenStore = async (url, env) =>
  await (await import("../stores/postgres/index.ts")).openPostgresStore({ url, ...env });
const openMysql: OpenStore = async (url, env) =>
  await (await import("../stores/mysql/index.ts")).openMysqlStore({ url, ...env });
const openDynamodb: OpenStore = async (url, env) =>
  await (await import("../stores/dynamodb/index.ts")).openDynamodbStore({ url, ...env });
const openEtcd: OpenStore = async (url, env) =>
  await (await import("../stores/etcd/index.ts")).openEtcdStore({ url, ...env });
const openNats: OpenStore = async (url, env) =>
  await (await import("../stores/nats/index.ts")).openNatsStore({ url, ...env });
const openObjects: OpenStore = async (url, env) =>
  await (await import("../stores/object/index.ts")).openObjectStore({ url, ...env });

const SCHEMES: Readonly<Record<string, OpenStore>> = {
  memory: async (_url, env) => new MemoryStore(env),
  embedded: async (url, env) => {
    const folder = pathOf(url, "embedded");
    return await (await import("../stores/sqlite/index.ts")).openEmbeddedStore({ folder, ...env });
  },
  file: async (url, env) => {
    const folder = pathOf(url, "file");
    return await (await import("../stores/file/index.ts")).openFileStore({ folder, ...env });
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

export async function openByScheme(url: string, env: WithEnv): Promise<LeaseStore> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const open = scheme === undefined ? undefined : SCHEMES[scheme];
  if (open !== undefined) return await open(url, env);
  const known = [...Object.keys(SCHEMES), "http", "https"].map((name) => `${name}:`).join(", ");
  const what = scheme === undefined ? "has no scheme" : `has the unknown scheme '${scheme}:'`;
  throw new RangeError(`the store URL ${what}: use one of ${known} (for example embedded:./data)`);
}

function pathOf(url: string, scheme: string): string {
  const path = url.slice(scheme.length + 1).replace(/^\/\/(?=\/)/, "");
  if (path === "") throw new RangeError(`${scheme}: needs a folder, for example ${scheme}:./data`);
  return path;
}

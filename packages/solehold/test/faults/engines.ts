/** The real servers that the fault matrix runs on: each private to the suite, because it is stopped and killed. */
import type { Env } from "../../src/env/index.ts";
import type { LeaseStore } from "../../src/store/index.ts";
import { openEtcdStore } from "../../src/stores/etcd/index.ts";
import { openMysqlStore } from "../../src/stores/mysql/index.ts";
import { openNatsStore } from "../../src/stores/nats/index.ts";
import { openObjectStore } from "../../src/stores/object/index.ts";
import { openPostgresStore } from "../../src/stores/postgres/index.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import {
  type Engine,
  type FaultProxy,
  startCeph,
  startDynalite,
  startEtcd,
  startMariadb,
  startNats,
  startPostgres,
  startRedis,
} from "../engines/index.ts";
import { openOn } from "../stores/dynamodb/place.ts";
import { cephPlace } from "../stores/object/places.ts";

export interface ClientOptions {
  /** The way to the server; straight when not given. */
  readonly proxy?: Pick<FaultProxy, "through">;
  readonly timeoutMs?: number;
  readonly env?: Env;
}

export interface FaultEngine {
  readonly title: string;
  /** Long enough for the resolution of the store's clock. */
  readonly ttlMs: number;
  start(): Promise<Engine>;
  open(engine: Engine, options: ClientOptions): Promise<LeaseStore>;
  /** Only what speaks to clients, where killing more would lose the data. */
  kill(engine: Engine): Promise<void>;
}

function through(engine: Engine, { proxy }: ClientOptions): string {
  return proxy === undefined ? engine.url : proxy.through(engine.url);
}

/** What is given of the common options. */
function common({ timeoutMs, env }: ClientOptions): { readonly timeoutMs?: number; readonly env?: Env } {
  return { ...(timeoutMs === undefined ? {} : { timeoutMs }), ...(env === undefined ? {} : { env }) };
}

const killAll = (engine: Engine): Promise<void> => engine.kill();

export const FAULT_ENGINES: readonly FaultEngine[] = [
  {
    title: "Redis",
    ttlMs: 900,
    start: () => startRedis({ flags: ["--appendfsync", "always"] }),
    open: (engine, options) => openRedisStore({ url: through(engine, options), ...common(options) }),
    kill: killAll,
  },
  {
    title: "PostgreSQL",
    ttlMs: 900,
    start: () => startPostgres(),
    open: (engine, options) => openPostgresStore({ url: through(engine, options), ...common(options) }),
    kill: killAll,
  },
  {
    title: "etcd",
    ttlMs: 900,
    start: () => startEtcd(),
    open: (engine, options) => {
      // With a proxy in the way there must be no other way.
      const urls = options.proxy === undefined ? engine.urls : [through(engine, options)];
      const members = urls.map((url) => new URL(url).host).join(",");
      return openEtcdStore({ url: `etcd://${members}`, ...common(options) });
    },
    kill: killAll,
  },
  {
    title: "NATS",
    ttlMs: 900,
    start: () => startNats(),
    open: (engine, options) => openNatsStore({ url: through(engine, options), ...common(options) }),
    kill: killAll,
  },
  {
    title: "MariaDB",
    ttlMs: 900,
    start: () => startMariadb(),
    open: (engine, options) => openMysqlStore({ url: through(engine, options), ...common(options) }),
    kill: killAll,
  },
  {
    title: "DynamoDB (dynalite)",
    // Its clock has whole seconds, and that of its front ends may differ by two more.
    ttlMs: 5_000,
    start: () => startDynalite(),
    open: (engine, options) => openOn(through(engine, options), common(options)),
    kill: killAll,
  },
  {
    title: "S3 (Ceph)",
    ttlMs: 1_500,
    start: () => startCeph(),
    open: (engine, options) => {
      const place = { ...cephPlace(engine), endpoint: through(engine, options) };
      return openObjectStore({ place, ...common(options) });
    },
    kill: async ({ processes }) => {
      for (const each of processes) if (each.name === "rgw") await each.kill();
    },
  },
];

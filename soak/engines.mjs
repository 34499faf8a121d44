// What a soak runs on: how to start it, how its workers reach it, and how it is disturbed while they work.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDynamodbStore } from "solehold/dynamodb";
import {
  startCeph,
  startDynalite,
  startEtcd,
  startMariadb,
  startNats,
  startPostgres,
  startRedis,
} from "../scripts/engines/index.mjs";
import { startServers } from "./servers.mjs";

/**
 * @typedef {object} Ground
 * @property {string} version
 * @property {string} url
 * @property {Readonly<Record<string, string>>} [env] For the workers, where a URL cannot carry credentials.
 * @property {number} ttlMs
 * @property {(() => Promise<void>) | null} restart One restart, gentle or not; null where nothing can be restarted.
 * @property {readonly number[]} pids Of the engine; none where it lives in its clients.
 * @property {() => Promise<void>} stop
 */

const SHORT_TTL_MS = 600;
/** The clock of an object store and of DynamoDB shows whole seconds. */
const COARSE_TTL_MS = 1_500;

/** Half of the restarts are a kill. */
async function restartOne(processes) {
  const victim = processes[Math.floor(Math.random() * processes.length)];
  if (Math.random() < 0.5) await victim.kill();
  await victim.restart();
}

function served(engine, url, ttlMs = SHORT_TTL_MS) {
  return {
    version: engine.version,
    url,
    ttlMs,
    restart: () => restartOne(engine.processes),
    pids: engine.processes.map(({ pid }) => pid),
    stop: () => engine.stop(),
  };
}

function inFolder(scheme) {
  const folder = mkdtempSync(join(tmpdir(), "solehold-soak-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  // Also when the soak is ended early.
  process.once("exit", remove);
  return {
    version: "in process",
    url: `${scheme}:${join(folder, "data")}`,
    ttlMs: SHORT_TTL_MS,
    restart: null,
    pids: [],
    stop: async () => remove(),
  };
}

/** @type {Readonly<Record<string, () => Promise<Ground>>>} */
export const ENGINES = {
  embedded: async () => inFolder("embedded"),
  file: async () => inFolder("file"),
  server: async () => {
    const engine = await startServers();
    return served(engine, engine.url);
  },
  redis: async () => {
    const engine = await startRedis({ flags: ["--appendfsync", "always"] });
    return served(engine, engine.url);
  },
  postgres: async () => {
    const engine = await startPostgres();
    return served(engine, engine.url);
  },
  mariadb: async () => {
    const engine = await startMariadb();
    return served(engine, engine.url);
  },
  etcd: async () => {
    const engine = await startEtcd();
    const members = engine.urls.map((url) => new URL(url).host).join(",");
    return served(engine, `etcd://${members}/soak?timeoutMs=2000`);
  },
  nats: async () => {
    const engine = await startNats();
    return served(engine, engine.url);
  },
  dynamodb: async () => {
    const engine = await startDynalite();
    const { region, ...credentials } = engine.credentials;
    const url = `dynamodb://leases?region=${region}&endpoint=${engine.url}`;
    const store = await openDynamodbStore({ url, credentials, createTable: true });
    await store.close();
    const { accessKeyId, secretAccessKey } = credentials;
    const env = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    return { ...served(engine, url, COARSE_TTL_MS), version: `dynalite ${engine.version}`, env };
  },
  s3: async () => {
    const engine = await startCeph();
    const { accessKeyId, secretAccessKey, region, bucket } = engine.credentials;
    return {
      ...served(engine, `s3://${bucket}/soak?endpoint=${engine.url}&region=${region}`, COARSE_TTL_MS),
      // The gateway alone: its storage is in memory.
      restart: () => restartOne(engine.processes.filter(({ name }) => name === "rgw")),
      env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    };
  },
};

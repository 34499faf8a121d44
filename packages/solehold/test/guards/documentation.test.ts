/** The examples of docs/guards.md are run as they stand there; after each, a zombie is refused. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import fastify from "fastify";
import { Redis } from "ioredis";
import * as kysely from "kysely";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import * as fastifyAdapter from "../../src/adapters/fastify.ts";
import * as guards from "../../src/guards/index.ts";
import { openObjects } from "../../src/stores/object/index.ts";
import { prismaClient } from "../adapters/packages/prisma.ts";
import { engine } from "../engines/index.ts";
import { azuritePlace } from "../stores/object/places.ts";
import { ownDatabase } from "./sql-clients.ts";
import { successor as lease, zombie } from "./zombie.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../../docs/guards.md"), "utf8");
const MODULES: Record<string, object> = {
  "solehold/guards": guards,
  "solehold/adapters/fastify": fastifyAdapter,
  kysely,
};
const STALE = { code: "STALE_FENCE" };

/** By heading: the code of its block. */
const EXAMPLES = new Map(
  PAGE.split(/^##+ /m).flatMap((section) => {
    const code = /^```js\n(.*?)^```$/ms.exec(section)?.[1];
    return code === undefined ? [] : [[section.split("\n", 1)[0] ?? "", code] as const];
  }),
);

/** Runs the example with these variables, and returns those that it declares under the given names. */
async function run(title: string, variables: object, ...wanted: readonly string[]): Promise<unknown[]> {
  const code = EXAMPLES.get(title);
  if (code === undefined) throw new Error(`docs/guards.md has no example under '${title}'`);
  const body = code.replace(/^import (\{.*\}) from "(.+)";$/gm, "const $1 = modules['$2'];");
  const names = Object.keys(variables);
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor;
  const example = AsyncFunction("modules", ...names, `${body}\nreturn [${wanted.join()}];`);
  return (await example(MODULES, ...Object.values(variables))) as unknown[];
}

let pool: pg.Pool;
let databaseUrl: string;
let drop: () => Promise<void> = async () => undefined;

beforeAll(async () => {
  const database = await ownDatabase("postgres", `guards_${randomBytes(6).toString("hex")}`);
  drop = database.drop;
  databaseUrl = database.url;
  pool = new pg.Pool({ connectionString: databaseUrl });
});

afterAll(async () => {
  await pool?.end();
  await drop();
});

beforeEach(async () => {
  await pool.query("drop table if exists invoice, solehold_fences");
  await pool.query("create table invoice (id integer, total integer); insert into invoice values (7, 1)");
});

const totals = async () => (await pool.query("select total from invoice")).rows;

it("runs every example of the page", () => {
  expect([...EXAMPLES.keys()]).toEqual([
    "Raise the fence before you read",
    "pg",
    "Kysely",
    "Prisma",
    "SQLite",
    "Redis",
    "Object storage",
    "HTTP",
  ]);
  expect(PAGE.match(/^```js$/gm)).toHaveLength(EXAMPLES.size);
});

it("Raise the fence before you read", async () => {
  const [ledger] = await run("Raise the fence before you read", { lease }, "ledger");
  const resource = ledger as guards.FencedResource<number>;
  expect(resource.state).toBe(101);
  expect(() => resource.write(zombie, () => 0)).toThrow(expect.objectContaining(STALE));
});

it("pg", async () => {
  await run("pg", { pool, lease });
  expect(await totals()).toEqual([{ total: 2 }]);
  await expect(run("pg", { pool, lease: zombie })).rejects.toMatchObject(STALE);
});

it("Kysely", async () => {
  await guards.pgGuard(pool).createTable();
  const db = new kysely.Kysely({ dialect: new kysely.PostgresDialect({ pool }) });
  await run("Kysely", { db, lease });
  expect(await totals()).toEqual([{ total: 3 }]);
  await expect(run("Kysely", { db, lease: zombie })).rejects.toMatchObject(STALE);
});

it("Prisma", async () => {
  await guards.pgGuard(pool).createTable();
  const prisma = prismaClient("postgres", databaseUrl);
  await run("Prisma", { prisma, lease });
  expect(await totals()).toEqual([{ total: 2 }]);
  await expect(run("Prisma", { prisma, lease: zombie })).rejects.toMatchObject(STALE);
  await prisma.$disconnect();
});

it("SQLite", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec("create table invoice (id integer, total integer); insert into invoice values (7, 1)");
  await run("SQLite", { database, lease });
  expect(database.prepare("select total from invoice").get()).toEqual({ total: 2 });
  await expect(run("SQLite", { database, lease: zombie })).rejects.toMatchObject(STALE);
});

it("Redis", async () => {
  const redis = new Redis(engine("redis"), { keyPrefix: `${randomBytes(6).toString("hex")}:` });
  await run("Redis", { redis, lease });
  await expect(run("Redis", { redis, lease: zombie })).rejects.toMatchObject(STALE);
  redis.disconnect();
});

it("Object storage", async () => {
  const objects = await openObjects(await azuritePlace(), { timeoutMs: 20_000 });
  const [bytes, fence] = await run("Object storage", { objects, lease }, "bytes", "fence");
  expect([String(bytes), fence]).toEqual(["text", lease.fence]);
  await expect(run("Object storage", { objects, lease: zombie })).rejects.toMatchObject(STALE);
});

it("HTTP", async () => {
  const app = fastify();
  const [url] = await run("HTTP", { app, key: lease.key, lease }, "url");
  const late = await fetch(`${url}/report`, { method: "PUT", headers: guards.fenceHeaders(zombie) });
  expect(late.status).toBe(412);
  await app.close();
});

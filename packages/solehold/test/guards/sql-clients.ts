/** Each package that people write with, on a real database, in one shape: a guard, a write, and what is written. */
import { DatabaseSync } from "@photostructure/sqlite";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle as drizzleMysql } from "drizzle-orm/mysql2";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import { drizzle as drizzlePostgresJs } from "drizzle-orm/postgres-js";
import knex from "knex";
import { Kysely, sql as kyselySql, MysqlDialect, PostgresDialect, SqliteDialect } from "kysely";
import mysqlCallbacks from "mysql2";
import mysql from "mysql2/promise";
import pg from "pg";
import postgres from "postgres";
import {
  drizzleGuard,
  type Fenced,
  knexGuard,
  kyselyGuard,
  mysql2Guard,
  pgGuard,
  postgresJsGuard,
  prismaGuard,
  type WithFenceOptions,
} from "../../src/guards/index.ts";
import { type PrismaTransaction, prismaClient } from "../adapters/packages/prisma.ts";
import { engine } from "../engines/index.ts";

/** A guard and its client, with the type of its transactions out of sight. */
export interface GuardedTable {
  createTable(): Promise<void>;
  raise(by: Fenced): Promise<void>;
  /** `before` runs in the transaction, before the write. */
  append(by: Fenced, text: string, options?: AppendOptions): Promise<void>;
  /** `fenceTransaction` in a transaction that the client began. */
  appendInOwnTransaction(by: Fenced, text: string): Promise<void>;
  /** `fenceTransaction` on something that is not a transaction. */
  misuse(by: Fenced): Promise<void>;
  exec(sql: string): Promise<unknown>;
  texts(): Promise<readonly string[]>;
  close(): Promise<unknown>;
}

export interface AppendOptions extends WithFenceOptions {
  readonly before?: () => Promise<void>;
}

/** What the parts of a client have in common, so that each client below says only what is its own. */
interface Parts<Transaction> {
  readonly guard: {
    createTable(): Promise<void>;
    raise(by: Fenced): Promise<void>;
    withFence<T>(by: Fenced, work: (tx: Transaction) => Promise<T>, options?: WithFenceOptions): Promise<T>;
    fenceTransaction(transaction: Transaction, by: Fenced): Promise<void>;
  };
  begin(work: (transaction: Transaction) => Promise<void>): Promise<unknown>;
  insert(transaction: Transaction, text: string): PromiseLike<unknown>;
  /** Fences what a careless caller passes; the compiler refuses it, too. */
  misuse(by: Fenced): Promise<void>;
  exec(sql: string): PromiseLike<unknown>;
  texts(): PromiseLike<readonly { readonly text: unknown }[]>;
  close(): Promise<unknown>;
}

function guardedTable<Transaction>(parts: Parts<Transaction>): GuardedTable {
  const { guard, begin, insert } = parts;
  return {
    createTable: () => guard.createTable(),
    raise: (by) => guard.raise(by),
    append: (by, text, { before, ...options } = {}) =>
      guard.withFence(
        by,
        async (transaction) => {
          await before?.();
          await insert(transaction, text);
        },
        options,
      ),
    appendInOwnTransaction: async (by, text) => {
      await begin(async (transaction) => {
        await guard.fenceTransaction(transaction, by);
        await insert(transaction, text);
      });
    },
    misuse: (by) => parts.misuse(by),
    exec: async (sql) => await parts.exec(sql),
    texts: async () => (await parts.texts()).map(({ text }) => String(text)),
    close: () => parts.close(),
  };
}

export interface SqlClientUnderTest {
  readonly title: string;
  readonly dialect: "postgres" | "mysql" | "sqlite";
  open(url: string): GuardedTable;
}

const SELECT = "select text from report order by at";

export const SQL_CLIENTS: readonly SqlClientUnderTest[] = [
  {
    title: "pg",
    dialect: "postgres",
    open: (connectionString) => {
      const pool = new pg.Pool({ connectionString });
      const guard = pgGuard(pool);
      return guardedTable<pg.PoolClient>({
        guard,
        misuse: (by) =>
          // @ts-expect-error it commits each statement by itself
          guard.fenceTransaction(pool, by),
        begin: async (work) => {
          const client = await pool.connect();
          try {
            await client.query("begin");
            await work(client);
            await client.query("commit");
          } catch (error) {
            await client.query("rollback");
            throw error;
          } finally {
            client.release();
          }
        },
        insert: (client, text) => client.query("insert into report (text) values ($1)", [text]),
        exec: (sql) => pool.query(sql),
        texts: async () => (await pool.query(SELECT)).rows,
        close: () => pool.end(),
      });
    },
  },
  {
    title: "postgres.js",
    dialect: "postgres",
    open: (url) => {
      const sql = postgres(url, { onnotice: () => undefined });
      const guard = postgresJsGuard(sql);
      return guardedTable<postgres.TransactionSql>({
        guard,
        misuse: (by) =>
          // @ts-expect-error it commits each statement by itself
          guard.fenceTransaction(sql, by),
        begin: (work) => sql.begin(work),
        insert: (tx, text) => tx`insert into report (text) values (${text})`,
        exec: (text) => sql.unsafe(text),
        texts: () => sql<{ text: string }[]>`select text from report order by at`,
        close: () => sql.end({ timeout: 1 }),
      });
    },
  },
  {
    title: "mysql2",
    dialect: "mysql",
    open: (uri) => {
      const pool = mysql.createPool({ uri });
      const guard = mysql2Guard(pool);
      return guardedTable<mysql.PoolConnection>({
        guard,
        misuse: (by) =>
          // @ts-expect-error it commits each statement by itself
          guard.fenceTransaction(pool, by),
        begin: async (work) => {
          const connection = await pool.getConnection();
          try {
            await connection.beginTransaction();
            await work(connection);
            await connection.commit();
          } catch (error) {
            await connection.rollback();
            throw error;
          } finally {
            connection.release();
          }
        },
        insert: (connection, text) => connection.query("insert into report (text) values (?)", [text]),
        exec: (sql) => pool.query(sql),
        texts: async () => (await pool.query<mysql.RowDataPacket[]>(SELECT))[0] as { text: string }[],
        close: () => pool.end(),
      });
    },
  },
  {
    title: "Kysely on pg",
    dialect: "postgres",
    open: (connectionString) =>
      kyselyTable(new PostgresDialect({ pool: new pg.Pool({ connectionString }) }), "postgres"),
  },
  {
    title: "Kysely on mysql2",
    dialect: "mysql",
    open: (uri) => kyselyTable(new MysqlDialect({ pool: mysqlCallbacks.createPool({ uri }) }), "mysql"),
  },
  {
    title: "Kysely on SQLite",
    dialect: "sqlite",
    open: (path) => kyselyTable(new SqliteDialect({ database: sqliteForKysely(path) }), "sqlite"),
  },
  {
    title: "Drizzle on pg",
    dialect: "postgres",
    open: (connectionString) => {
      const client = new pg.Pool({ connectionString });
      const db = drizzlePg({ client });
      const guard = drizzleGuard({ db, sql: drizzleSql, dialect: "postgres" });
      return guardedTable<Parameters<Parameters<typeof db.transaction>[0]>[0]>({
        guard,
        misuse: (by) =>
          // @ts-expect-error it commits each statement by itself
          guard.fenceTransaction(db, by),
        begin: (work) => db.transaction(work),
        insert: (tx, text) => tx.execute(drizzleSql`insert into report (text) values (${text})`),
        exec: (text) => client.query(text),
        texts: async () => (await client.query(SELECT)).rows,
        close: () => client.end(),
      });
    },
  },
  {
    title: "Drizzle on postgres.js",
    dialect: "postgres",
    open: (url) => {
      const client = postgres(url, { onnotice: () => undefined });
      const db = drizzlePostgresJs({ client });
      const guard = drizzleGuard({ db, sql: drizzleSql, dialect: "postgres" });
      return guardedTable<Parameters<Parameters<typeof db.transaction>[0]>[0]>({
        guard,
        misuse: (by) =>
          // @ts-expect-error it commits each statement by itself
          guard.fenceTransaction(db, by),
        begin: (work) => db.transaction(work),
        insert: (tx, text) => tx.execute(drizzleSql`insert into report (text) values (${text})`),
        exec: (text) => client.unsafe(text),
        texts: () => client<{ text: string }[]>`select text from report order by at`,
        close: () => client.end({ timeout: 1 }),
      });
    },
  },
  {
    title: "Drizzle on mysql2",
    dialect: "mysql",
    open: (uri) => {
      const client = mysql.createPool({ uri });
      const db = drizzleMysql({ client });
      const guard = drizzleGuard({ db, sql: drizzleSql, dialect: "mysql" });
      return guardedTable<Parameters<Parameters<typeof db.transaction>[0]>[0]>({
        guard,
        misuse: (by) =>
          // @ts-expect-error it commits each statement by itself
          guard.fenceTransaction(db, by),
        begin: (work) => db.transaction(work),
        insert: (tx, text) => tx.execute(drizzleSql`insert into report (text) values (${text})`),
        exec: (text) => client.query(text),
        texts: async () => (await client.query<mysql.RowDataPacket[]>(SELECT))[0] as { text: string }[],
        close: () => client.end(),
      });
    },
  },
  {
    title: "Knex on pg",
    dialect: "postgres",
    open: (connection) => knexTable(knex({ client: "pg", connection }), "postgres"),
  },
  {
    title: "Knex on mysql2",
    dialect: "mysql",
    open: (connection) => knexTable(knex({ client: "mysql2", connection }), "mysql"),
  },
  { title: "Prisma on pg", dialect: "postgres", open: (url) => prismaTable(url, "postgres") },
  { title: "Prisma on mariadb", dialect: "mysql", open: (url) => prismaTable(url, "mysql") },
];

interface Schema {
  report: { text: string; at?: number };
}

function kyselyTable(
  dialect: ConstructorParameters<typeof Kysely>[0]["dialect"],
  name: SqlClientUnderTest["dialect"],
): GuardedTable {
  const db = new Kysely<Schema>({ dialect });
  const guard = kyselyGuard({ db, sql: kyselySql, dialect: name });
  return guardedTable({
    guard,
    misuse: (by) =>
      // @ts-expect-error it commits each statement by itself
      guard.fenceTransaction(db, by),
    begin: (work) => db.transaction().execute(work),
    insert: (tx, text) => tx.insertInto("report").values({ text }).execute(),
    exec: (text) => kyselySql.raw(text).execute(db),
    texts: () => db.selectFrom("report").select("text").orderBy("at").execute(),
    close: () => db.destroy(),
  });
}

/** Kysely expects the shape of better-sqlite3. */
function sqliteForKysely(path: string): ConstructorParameters<typeof SqliteDialect>[0]["database"] & object {
  const database = new DatabaseSync(path);
  database.exec("pragma busy_timeout = 10000");
  return {
    close: () => database.close(),
    prepare: (text: string) => {
      const statement = database.prepare(text);
      return {
        reader: /^\s*select|\breturning\b/i.test(text),
        all: (values: readonly unknown[]) => statement.all(...(values as string[])),
        run: (values: readonly unknown[]) => statement.run(...(values as string[])),
        iterate: (values: readonly unknown[]) => statement.iterate(...(values as string[])),
      };
    },
  } as never;
}

function knexTable(db: knex.Knex, dialect: "postgres" | "mysql"): GuardedTable {
  const guard = knexGuard({ knex: db, dialect });
  return guardedTable<knex.Knex.Transaction>({
    guard,
    misuse: (by) =>
      // @ts-expect-error it commits each statement by itself
      guard.fenceTransaction(db, by),
    begin: (work) => db.transaction(work),
    insert: (tx, text) => tx("report").insert({ text }),
    exec: (text) => db.raw(text),
    texts: () => db("report").select("text").orderBy("at"),
    close: () => db.destroy(),
  });
}

function prismaTable(url: string, dialect: "postgres" | "mysql"): GuardedTable {
  const prisma = prismaClient(dialect, url);
  const guard = prismaGuard({ prisma, dialect });
  return guardedTable<PrismaTransaction>({
    guard,
    misuse: (by) =>
      // @ts-expect-error it commits each statement by itself
      guard.fenceTransaction(prisma, by),
    begin: (work) => prisma.$transaction(work),
    insert: (tx, text) => tx.$executeRaw`insert into report (text) values (${text})`,
    exec: (text) => prisma.$queryRawUnsafe(text),
    texts: () => prisma.$queryRaw<{ text: string }[]>`select text from report order by at`,
    close: () => prisma.$disconnect(),
  });
}

/** A database of its own on the shared engine, and its end. */
export async function ownDatabase(
  dialect: "postgres" | "mysql",
  name: string,
): Promise<{ readonly url: string; drop(): Promise<void> }> {
  const url = new URL(engine(dialect === "postgres" ? "postgres" : "mariadb"));
  const admin = async (sql: string): Promise<void> => {
    if (dialect === "postgres") {
      const client = new pg.Client({ connectionString: url.href });
      await client.connect();
      await client.query(sql).finally(() => client.end());
    } else {
      const connection = await mysql.createConnection({ uri: url.href });
      await connection.query(sql).finally(() => connection.end());
    }
  };
  await admin(`create database ${name}`);
  const own = new URL(url.href);
  own.pathname = `/${name}`;
  return { url: own.href, drop: () => admin(`drop database ${name}`) };
}

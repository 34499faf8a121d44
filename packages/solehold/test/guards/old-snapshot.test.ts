/** A zombie whose transaction read something before its successor raised the fence: its snapshot shows the old one. */
import { randomBytes } from "node:crypto";
import mysql from "mysql2/promise";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { mysql2Guard, pgGuard } from "../../src/guards/index.ts";
import { ownDatabase } from "./sql-clients.ts";
import { successor, zombie } from "./zombie.ts";

const name = `guards_${randomBytes(6).toString("hex")}`;
const READ = "select fence from solehold_fences";

it("is refused by MySQL, which reads the fence as it is now", async () => {
  const { url: uri, drop } = await ownDatabase("mysql", name);
  const pool = mysql.createPool({ uri });
  onTestFinished(async () => {
    await pool.end();
    await drop();
  });
  const guard = mysql2Guard(pool);
  await guard.createTable();
  await guard.raise(zombie);
  const connection = await pool.getConnection();
  await expect(guard.fenceTransaction(connection, zombie)).rejects.toThrow(/needs an open transaction/);
  await connection.query("set session transaction isolation level repeatable read");
  await connection.beginTransaction();
  await connection.query(READ);
  await guard.raise(successor);
  await expect(guard.fenceTransaction(connection, zombie)).rejects.toMatchObject({ code: "STALE_FENCE" });
  await connection.rollback();
  connection.release();
});

it("is refused by PostgreSQL, which does not write over what the snapshot lacks", {
  timeout: 120_000,
}, async () => {
  const { url: connectionString, drop } = await ownDatabase("postgres", name);
  const pool = new pg.Pool({ connectionString });
  onTestFinished(async () => {
    await pool.end();
    await drop();
  });
  const guard = pgGuard(pool);
  await guard.createTable();
  await guard.raise(zombie);
  const client = await pool.connect();
  await client.query("begin isolation level repeatable read");
  await client.query(READ);
  await guard.raise(successor);
  await expect(guard.fenceTransaction(client, zombie)).rejects.toMatchObject({ code: "40001" });
  await client.query("rollback");
  client.release();
});

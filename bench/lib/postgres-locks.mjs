// Locks on PostgreSQL: hand-written SQL as the floor, and @verrou/core with knex.
import { Verrou } from "@verrou/core";
import { knexStore } from "@verrou/core/drivers/knex";
import createKnex from "knex";
import pg from "pg";

const ACQUIRE = `insert into raw_lock values ($1, $2, clock_timestamp() + interval '30 s')
  on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
  where raw_lock.expires_at < clock_timestamp()`;
const RELEASE = "delete from raw_lock where name = $1 and holder = $2";

export async function rawPool(url, max) {
  const pool = new pg.Pool({ connectionString: url, max });
  await pool.query(
    "create table if not exists raw_lock (name text primary key, holder text not null, expires_at timestamptz not null)",
  );
  return pool;
}

/** An upsert that takes only what is free or expired, then a delete by name and holder. Prepared statements. */
export function rawPairs(pool, names) {
  let token = 0;
  return async (worker, index) => {
    token += 1;
    const values = [names(worker, index), String(token)];
    const acquired = await pool.query({ name: "acquire", text: ACQUIRE, values });
    if (acquired.rowCount !== 1) throw new Error("raw: not locked");
    const released = await pool.query({ name: "release", text: RELEASE, values });
    if (released.rowCount !== 1) throw new Error("raw: not unlocked");
  };
}

export function knexOn(url, max) {
  return createKnex({ client: "pg", connection: url, pool: { min: 0, max } });
}

/** `lock(name)` resolves with the function that unlocks. */
export function verrouOnKnex(connection) {
  const verrou = new Verrou({ default: "sql", stores: { sql: { driver: knexStore({ connection }) } } });
  return async (name) => {
    const lock = verrou.createLock(name);
    if (!(await lock.acquire())) throw new Error("@verrou/core: not locked");
    return () => lock.release();
  };
}

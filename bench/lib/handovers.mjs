// Somebody holds, somebody waits: how long from the beginning of the release until the waiter has it.

const SETTLE_MS = 60;

/**
 * `holder` and `waiter` are `lock(name)` of two clients that know nothing of each other; each resolves with the function
 * that unlocks. Returns the milliseconds of each handover. `settleMs` lets the waiter get into its wait.
 */
export async function handoverTimes({ holder, waiter, count, settleMs = SETTLE_MS, name }) {
  const times = [];
  for (let index = 0; index < count; index += 1) {
    const key = `${name}/${index}`;
    const unlock = await holder(key);
    let handedOverAt = 0;
    const waiting = waiter(key).then((next) => {
      handedOverAt = performance.now();
      return next;
    });
    await pause(settleMs);
    const releasedAt = performance.now();
    await Promise.all([unlock(), waiting]);
    times.push(handedOverAt - releasedAt);
    await (await waiting)();
  }
  return times;
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** `lock(name, signal)` of a `Leases` object, waiting for as long as it takes or until the signal. */
export function leaseLocks(leases) {
  return async (name, signal) => {
    const lease = await leases.acquire(name, { wait: "1m", ...(signal === undefined ? {} : { signal }) });
    return () => lease.release();
  };
}

/** A list with one token in it: whoever pops it holds the lock. Redis wakes who waits; nothing expires. */
export function listLocks(client) {
  const made = new Set();
  return async (name) => {
    const key = `list:${name}`;
    if (!made.has(name)) {
      made.add(name);
      // The token exists once: only the first client that comes makes it.
      if ((await client.setnx(`made:${key}`, "1")) === 1) await client.rpush(key, "token");
    }
    await client.blpop(key, 60);
    return () => client.rpush(key, "token");
  };
}

const CLAIM = `insert into handed_over values ($1, $2) on conflict (name) do update set holder = excluded.holder
  where handed_over.holder is null`;
const RELEASE = "update handed_over set holder = null where name = $1 and holder = $2";
const CHANNEL = "handed_over";

/**
 * A row that is claimed and released by hand-written statements, each synced; the waiter is woken by NOTIFY and claims
 * at once. `connect()` gives a client of `pg`: one for the statements, one to listen. Nothing expires.
 */
export async function notifiedLocks(connect) {
  const [client, listening] = [await connect(), await connect()];
  const woken = new Map();
  listening.on("notification", ({ payload }) => woken.get(payload)?.());
  await client.query("create table if not exists handed_over (name text primary key, holder text)");
  await listening.query(`listen ${CHANNEL}`);
  const claimed = async (name) => {
    const { rowCount } = await client.query({ name: "claim", text: CLAIM, values: [name, "holder"] });
    return rowCount === 1;
  };
  return async (name) => {
    for (;;) {
      // The notification may come before the answer to its claim is there.
      const notified = new Promise((resolve) => woken.set(name, resolve));
      if (await claimed(name)) break;
      await notified;
    }
    woken.delete(name);
    return async () => {
      const released = client.query({ name: "release", text: RELEASE, values: [name, "holder"] });
      const sent = client.query({
        name: "notify",
        text: `select pg_notify('${CHANNEL}', $1)`,
        values: [name],
      });
      await Promise.all([released, sent]);
    };
  };
}

/** PostgreSQL's own lock between sessions, on a connection of its own. Nothing expires. */
export function advisoryLocks(connection) {
  return async (name) => {
    await connection.query("select pg_advisory_lock(hashtext($1))", [name]);
    return () => connection.query("select pg_advisory_unlock(hashtext($1))", [name]);
  };
}

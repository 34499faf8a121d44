// How much a server was asked, by its own count. Each of these questions counts as one.

/**
 * Reads from connections: one a request where requests are not pipelined. The count of commands would count those
 * inside of scripts as well.
 */
export async function redisRequests(client) {
  const [, total] = /^total_reads_processed:(\d+)/m.exec(await client.info("stats"));
  return Number(total);
}

/** Transactions of the current database. The server updates the figure about once a second. */
export async function postgresTransactions(pool) {
  const { rows } = await pool.query(
    "select pg_stat_clear_snapshot(), xact_commit + xact_rollback as total from pg_stat_database where datname = current_database()",
  );
  return Number(rows[0].total);
}

/** Lease commands that a Solehold server has answered or keeps in line; heartbeats (one a second and client) are none. */
export async function serverCommands(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text
    .split("\n")
    .filter((line) => /^solehold_(waiters |requests_total\{.*(acquire|release))/.test(line));
  return lines.map((line) => Number(line.split(" ").at(-1))).reduce((total, value) => total + value, 0);
}

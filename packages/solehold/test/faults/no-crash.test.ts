/** No broken connection ends the process of a store's user, whatever engine it is. (PostgreSQL's clients: there.) */
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, describe, it } from "vitest";
import type { Engine } from "../engines/index.ts";
import { disturbStores, FAULT_MS } from "./disturbance.ts";
import { FAULT_ENGINES } from "./engines.ts";
import { startSaboteur } from "./saboteur.ts";

describe.each(FAULT_ENGINES)("connections to $title", ({ title, start, open }) => {
  let server: Engine;
  let admin: Pool | undefined;

  beforeAll(async () => {
    server = await start();
    if (title === "MariaDB") admin = createPool({ uri: server.url });
  });

  afterAll(async () => {
    await admin?.end();
    await server?.stop();
  });

  /** As an operator would, or a server with a limit on idle connections. */
  async function killConnections(pool: Pool): Promise<void> {
    const sql = "select id from information_schema.processlist where id <> connection_id() and rand() < 0.5";
    const [rows] = await pool.query(sql);
    for (const { id } of rows as { id: number }[]) await pool.query(`kill ${id}`).catch(() => undefined);
  }

  it(
    "that end and are reset in every state end no process",
    async () => {
      const saboteur = await startSaboteur(Number(new URL(server.url).port));
      const pool = admin;
      await disturbStores({
        open: () => open(server, { proxy: saboteur, timeoutMs: 500 }),
        saboteur,
        ...(pool && { terminate: () => killConnections(pool) }),
      });
      await saboteur.close();
    },
    FAULT_MS + 60_000,
  );
});

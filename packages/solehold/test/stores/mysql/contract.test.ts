/** The kit on a real MariaDB: by URL, and through a pool of the caller's with settings of its own. */
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import type { LeaseKey } from "../../../src/core/index.ts";
import { openMysqlStore } from "../../../src/stores/mysql/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { type Engine, startMariadb } from "../../engines/index.ts";

let server: Engine;
let admin: Pool;

beforeAll(async () => {
  server = await startMariadb();
  admin = createPool({ uri: server.url });
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
});

const open = () => openMysqlStore({ url: server.url });
const openFaulty = () => faultyClient(server.url, (url) => openMysqlStore({ url, timeoutMs: 700 }));
const corrupt = async ({ tenant, name }: LeaseKey): Promise<void> => {
  const sql = "update solehold_leases set value = concat(value, 'damage') where tenant = ? and name = ?";
  await admin.query(sql, [tenant, name]);
};

describeStore("MariaDB", { open, openSecond: open, openFaulty, corrupt }, { describe, it });
describeLeases(
  "MariaDB",
  { open, openSecond: open, openFaulty, child: () => kitProcess(server.url), patienceMs: 100_000 },
  { describe, it },
);

/** As somebody might have it for other purposes. */
const oddPool = () =>
  createPool({
    uri: server.url,
    charset: "latin1_swedish_ci",
    rowsAsArray: true,
    bigNumberStrings: true,
    supportBigNumbers: true,
    typeCast: () => "not what was meant",
    namedPlaceholders: true,
  });
let odd: Pool | undefined;
afterAll(() => odd?.end());

describeStore(
  "MariaDB through a pool with odd settings",
  {
    open: () => {
      odd ??= oddPool();
      return openMysqlStore({ pool: odd, table: "odd", pollMs: 20 });
    },
    openSecond: () => openMysqlStore({ url: server.url.replace("mariadb:", "mysql:"), table: "odd" }),
    effort: EFFORT,
  },
  { describe, it },
);

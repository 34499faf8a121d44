// A real MariaDB server with durability left on (a sync with every commit): only the creation of the empty data folder is
// not synced. Loopback TCP only, password login, an account that may do everything.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { firstBytes } from "./probes.mjs";
import { requireProgram, run } from "./programs.mjs";

const ACCOUNT = "solehold";
const PASSWORD = "solehold";
const DATABASE = "solehold";

/** Runs at every start, before the server listens. */
const ACCOUNT_SQL = `create database if not exists ${DATABASE};
create user if not exists '${ACCOUNT}'@'%' identified by '${PASSWORD}';
grant all privileges on *.* to '${ACCOUNT}'@'%' with grant option;
`;

/** @type {typeof import("./index.mjs").startMariadb} */
export const startMariadb = async ({ dataDir: wanted, settings = [] } = {}) => {
  const startedAt = performance.now();
  const program = requireProgram("mariadb", "mariadbd");
  const version = /Ver (\d[\d.]*)/.exec(await run(program, ["--version"]))?.[1] ?? "unknown";

  return withPlace({ name: "mariadb", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    const data = join(dataDir, "data");
    const initFile = join(dataDir, "account.sql");
    writeFileSync(initFile, ACCOUNT_SQL);
    // A server that starts deletes what it finds of temporary tables, so each has a folder of its own for them.
    const temporary = join(dataDir, "tmp");
    mkdirSync(temporary, { recursive: true });
    // It refuses to run as root unless root is named.
    const common = [
      "--no-defaults",
      `--datadir=${data}`,
      `--tmpdir=${temporary}`,
      ...(process.getuid?.() === 0 ? ["--user=root"] : []),
    ];
    await run(requireProgram("mariadb", "mariadb-install-db"), [
      ...common,
      ...["--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-flush-method=nosync"],
    ]);
    const server = place.define({
      name: "mariadb",
      command: program,
      args: [
        ...common,
        ...["--bind-address=127.0.0.1", `--port=${port}`, `--socket=${join(dataDir, "mariadb.sock")}`],
        ...[`--pid-file=${join(dataDir, "mariadb.pid")}`, `--init-file=${initFile}`, "--skip-name-resolve"],
        ...["--max-connections=300", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=1"],
        ...settings.map((setting) => `--${setting}`),
      ],
      logFile: join(dataDir, "mariadb.log"),
      ready: async () => (await firstBytes(port)).includes("mysql_native_password"),
    });
    const urls = [`mariadb://${ACCOUNT}:${PASSWORD}@127.0.0.1:${port}/${DATABASE}`];
    return startEngine({ name: "mariadb", version, urls, place, processes: [server] }, startedAt);
  });
};

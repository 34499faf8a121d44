/** A standby of a running PostgreSQL, and an address that leads to one server or the other. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { connect as connectTo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import type { Engine } from "../../engines/index.ts";
import { eventually } from "./support.ts";

const run = promisify(execFile);

/** PostgreSQL refuses to run as root; then it runs as the user of its package. */
const AS_POSTGRES =
  process.getuid?.() === 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"] : [];

async function program(name: string): Promise<string> {
  const { stdout } = await run("which", ["postgres"]);
  return join(dirname(realpathSync(stdout.trim())), name);
}

export interface Standby {
  readonly url: string;
  start(): Promise<void>;
  /** Resolves when it has all that the primary had when this was called. */
  catchUp(): Promise<void>;
  /** Resolves when it takes writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
  remove(): Promise<void>;
}

export async function standbyOf(primary: Engine, name: string): Promise<Standby> {
  const folder = mkdtempSync(join(tmpdir(), "solehold-standby-"));
  const data = join(folder, "data");
  const port = await freePort();
  const url = new URL(primary.url);
  url.port = `${port}`;
  if (AS_POSTGRES.length > 0) await run("chown", ["postgres:postgres", folder]);
  const source = `${primary.url}?application_name=${name}`;
  const copying = [await program("pg_basebackup"), "-D", data, "-d", source, "-R", "-c", "fast", "--no-sync"];
  const [command = "", ...args] = [...AS_POSTGRES, ...copying];
  await run(command, args, { cwd: "/" });
  const server = await program("postgres");
  let child: ChildProcess | null = null;

  const ask = async (text: string, at = url.href): Promise<string | undefined> => {
    const client = new pg.Client(at);
    client.on("error", () => undefined);
    try {
      await client.connect();
      return (await client.query({ text, rowMode: "array" })).rows[0]?.[0];
    } finally {
      await client.end();
    }
  };
  const until = (text: string): Promise<unknown> =>
    eventually(async () => {
      if (child === null || child.exitCode !== null) throw new Error("the standby is not running");
      return String(await ask(text).catch(() => "")) === "true";
    });
  const stop = async (): Promise<void> => {
    if (child === null || child.exitCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGINT");
    await gone;
    child = null;
  };
  return {
    url: url.href,
    start: async () => {
      // A standby takes no fewer connections than its primary.
      const settings = [
        ...[`port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories="],
        ...["max_connections=200", "wal_receiver_status_interval=1s"],
      ];
      const [head = "", ...rest] = [
        ...AS_POSTGRES,
        server,
        "-D",
        data,
        ...settings.flatMap((each) => ["-c", each]),
      ];
      child = spawn(head, rest, { cwd: "/", stdio: "ignore" });
      await until("select pg_is_in_recovery()");
    },
    catchUp: async () => {
      const position = await ask("select pg_current_wal_lsn()", primary.url);
      await until(`select pg_last_wal_replay_lsn() >= '${position}'`);
    },
    promote: async () => {
      await ask("select pg_promote()");
      await until("select not pg_is_in_recovery()");
    },
    stop,
    remove: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  server.close();
  await once(server, "close");
  return port;
}

export interface Address {
  readonly url: string;
  /** From now on it leads there; connections to the other server are cut. */
  lead(to: string): void;
  close(): Promise<void>;
}

/** As a virtual address or a DNS name: whoever connects gets to the server of the moment. */
export async function addressOf(first: string): Promise<Address> {
  let target = first;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connectTo(Number(new URL(target).port), "127.0.0.1");
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        sockets.delete(from);
      });
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const url = new URL(first);
  url.port = `${typeof address === "object" && address !== null ? address.port : 0}`;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    lead: (to) => {
      target = to;
      cut();
    },
    close: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

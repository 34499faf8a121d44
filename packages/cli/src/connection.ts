/**
 * From a command's options to the leases behind them. `--store` and `--server` are the same thing to the
 * commands: a URL whose scheme says what is behind it.
 */
import { hostname, userInfo } from "node:os";
import { connect, defaultHolder, keyNameProblem, type Leases, realEnv } from "solehold";
import type { Invocation } from "./command.ts";
import { usageFailure } from "./failure.ts";

export const DEFAULT_URL = "embedded:./.solehold/data";
const SERVER_URL = /^https?:\/\//i;
/** A store that does not answer must not keep a finished command from ending. */
const CLOSE_WITHIN_MS = 1_000;
const LONGEST_PART = 60;

export function urlOf({ values, io }: Invocation): string {
  const { store, server } = values;
  if (store !== undefined && server !== undefined) {
    throw usageFailure("--store and --server exclude each other: give one of them");
  }
  if (server !== undefined && !SERVER_URL.test(server)) {
    throw usageFailure(`--server must be an http:// or https:// URL, got ${JSON.stringify(server)}`);
  }
  return store ?? server ?? io.env.SOLEHOLD_URL ?? DEFAULT_URL;
}

/** Unique to the process for commands that hold a lease themselves; the user's own name for the others. */
export type HolderDefault = "process" | "user";

/** Connects, does the work, closes: whatever happens, and within bounded time. */
export async function withLeases<Result>(
  invocation: Invocation,
  holderDefault: HolderDefault,
  work: (leases: Leases) => Promise<Result>,
): Promise<Result> {
  const { values, io } = invocation;
  const tenant = values.tenant ?? io.env.SOLEHOLD_TENANT;
  const given = values.holder ?? io.env.SOLEHOLD_HOLDER;
  const holder = given ?? (holderDefault === "process" ? defaultHolder(realEnv) : userAtHost());
  const leases = await connect(urlOf(invocation), { holder, ...(tenant === undefined ? {} : { tenant }) });
  // Stores do not keep a process alive; a command that waits for their news must.
  const alive = realEnv.timer(Number.MAX_SAFE_INTEGER, () => undefined, { keepAlive: true });
  try {
    return await work(leases);
  } finally {
    await closeInTime(leases);
    alive.cancel();
  }
}

async function closeInTime(leases: Leases): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = realEnv.timer(CLOSE_WITHIN_MS, resolve, { keepAlive: true });
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    leases.close().then(done, done);
  });
}

/** The same in every shell of a person, so that renew and release need no more than the token. */
function userAtHost(): string {
  return `${userName().slice(0, LONGEST_PART)}@${hostname().slice(0, LONGEST_PART)}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container's user id without an entry in the password file.
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}

/** The KEY of the command line, checked. */
export function keyOf({ positionals: [name = ""] }: Invocation): string {
  const problem = keyNameProblem(name);
  if (problem !== null) throw usageFailure(`KEY ${problem}, got ${JSON.stringify(name)}`);
  return name;
}

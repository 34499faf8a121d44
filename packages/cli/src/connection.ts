/**
 * From a command's options to the leases behind them. `--store` and `--server` are the same thing to the
 * commands: a URL whose scheme says what is behind it.
 */
import { hostname, userInfo } from "node:os";
import { type LeaseExecutor, Leases } from "solehold";
import {
  DEFAULT_TENANT,
  defaultHolder,
  delay,
  keyNameProblem,
  openExecutor,
  realEnv,
} from "solehold/internal";
import type { Invocation } from "./command.ts";
import { usageFailure } from "./failure.ts";
import { durationOption } from "./parse/option-values.ts";

const DEFAULT_URL = "embedded:./.solehold/data";
const SERVER_URL = /^https?:\/\//i;
/** A store that does not answer must not keep a finished command from ending. */
const CLOSE_WITHIN_MS = 1_000;
const LONGEST_PART = 60;

export interface Connection {
  readonly leases: Leases;
  /** What is behind the leases, for what they do not offer: commands by token, listings, maintenance. */
  readonly executor: LeaseExecutor;
  readonly tenant: string;
  readonly holder: string;
}

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

export function tenantOf({ values, io }: Invocation): string {
  return values.tenant ?? io.env.SOLEHOLD_TENANT ?? DEFAULT_TENANT;
}

/**
 * Connects, does the work, closes: whatever happens, and within bounded time. The default holder is unique to the
 * process for commands that hold a lease themselves, and the user's own name for the others.
 */
export async function withLeases<Result>(
  invocation: Invocation,
  holderDefault: "process" | "user",
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const { values, io } = invocation;
  const given = values.holder ?? io.env.SOLEHOLD_HOLDER;
  const holder = given ?? (holderDefault === "process" ? defaultHolder(realEnv) : userAtHost());
  const tenant = tenantOf(invocation);
  const timeout = durationOption(invocation, "timeout", 1);
  const executor = await openExecutor(urlOf(invocation), timeout === null ? {} : { timeout });
  const leases = new Leases({ executor, holder, tenant });
  // Stores do not keep a process alive; a command that waits for their notifications must.
  const alive = realEnv.timer(Number.MAX_SAFE_INTEGER, () => undefined, { keepAlive: true });
  try {
    return await work({ leases, executor, tenant, holder });
  } finally {
    const enough = new AbortController();
    const closed = leases.close().catch(() => undefined);
    await Promise.race([closed, delay(realEnv, CLOSE_WITHIN_MS, enough.signal)]);
    enough.abort();
    alive.cancel();
  }
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
export function keyOf({ positionals: [name = ""] }: Pick<Invocation, "positionals">): string {
  const problem = keyNameProblem(name);
  if (problem !== null) throw usageFailure(`KEY ${problem}, got ${JSON.stringify(name)}`);
  return name;
}

/** All of them, where a command takes several. */
export function keysOf({ positionals }: Invocation): readonly string[] {
  const keys = positionals.map((name) => keyOf({ positionals: [name] }));
  const twice = keys.find((name, index) => keys.indexOf(name) !== index);
  if (twice !== undefined) throw usageFailure(`KEY ${JSON.stringify(twice)} is given twice: name each once`);
  return keys;
}

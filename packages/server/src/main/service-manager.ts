/**
 * Tells systemd, or another service manager with the same protocol, that the server is ready, that its event loop turns, and
 * that it stops. Without NOTIFY_SOCKET this does nothing.
 *
 * Node has no datagram sockets of the Unix kind, so each message is a run of `systemd-notify`, which systemd brings. The unit
 * therefore needs `NotifyAccess=all`. Messages are not waited for: a service manager that gets none acts by its own timeouts.
 */
import { spawn } from "node:child_process";
import type { Env } from "solehold/internal";

export interface ServiceManager {
  ready(): void;
  stopping(): void;
}

export interface ServiceManagerOptions {
  readonly env: Env;
  /** NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID are read; PATH leads to `systemd-notify`. */
  readonly variables: NodeJS.ProcessEnv;
  readonly pid: number;
  /** Called once, if a message cannot be sent. */
  readonly onFailed: (message: string) => void;
}

/** systemd asks for a sign of life at least this often within its limit. */
const BEATS_PER_LIMIT = 2;

export function serviceManagerOf(options: ServiceManagerOptions): ServiceManager {
  const { env, variables } = options;
  if (!variables.NOTIFY_SOCKET) return { ready: () => undefined, stopping: () => undefined };
  let hasFailed = false;
  const fail = (why: string): void => {
    if (!hasFailed)
      options.onFailed(`systemd-notify failed (${why}): use Type=exec without WatchdogSec, or install it`);
    hasFailed = true;
  };
  const send = (message: string): void => {
    const child = spawn("systemd-notify", [message], { env: variables, stdio: "ignore" });
    child.once("error", ({ message }) => fail(message));
    child.once("exit", (code) => (code === 0 ? undefined : fail(`exit code ${code}`)));
    child.unref();
  };
  const beatMs = beatOf(options);
  const beat = (): void => {
    send("WATCHDOG=1");
    env.timer(beatMs, beat);
  };
  return {
    ready() {
      send("READY=1");
      if (Number.isFinite(beatMs)) beat();
    },
    stopping: () => send("STOPPING=1"),
  };
}

/** Infinity where no watchdog waits for this process. */
function beatOf({ variables, pid }: ServiceManagerOptions): number {
  const { WATCHDOG_USEC = "", WATCHDOG_PID = `${pid}` } = variables;
  const limitMs = Number(WATCHDOG_USEC) / 1_000;
  return WATCHDOG_PID === `${pid}` && limitMs > 0 ? limitMs / BEATS_PER_LIMIT : Number.POSITIVE_INFINITY;
}

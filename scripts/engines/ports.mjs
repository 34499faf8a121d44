// Free ports on loopback. A port is free when it is returned, not reserved: between here and the server's own bind
// another process may take it, so starters go through `withFreePorts`, which tries again with others.
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const LOWEST_PORT = 12_000;
const MAX_START_ATTEMPTS = 4;
const PORT_TAKEN = /address already in use|EADDRINUSE|unable to bind|could not bind|failed to bind/i;

/** Ports that this process has given to an engine; a killed engine keeps its own for `restart`. */
const handedOut = new Set();

/**
 * Ports below the kernel's ephemeral range, so that while an engine is down no outgoing connection of another
 * process is given the port that the engine will want back.
 */
function highestPort() {
  try {
    const [first] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").trim().split(/\s+/);
    return Math.max(LOWEST_PORT + 1000, Number(first) - 1);
  } catch {
    return 32_767;
  }
}

/** @returns {Promise<number>} */
export async function freePort() {
  const highest = highestPort();
  for (let tries = 0; tries < 1000; tries += 1) {
    const port = randomInt(LOWEST_PORT, highest + 1);
    if (handedOut.has(port) || !(await canBind(port))) continue;
    handedOut.add(port);
    return port;
  }
  throw new Error(`no free port between ${LOWEST_PORT} and ${highest} on 127.0.0.1`);
}

/** @param {number} port */
function canBind(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * Runs `start` with fresh ports, and again with others when it failed because a port was taken meanwhile.
 * @template T
 * @param {number} count
 * @param {(ports: number[]) => Promise<T>} start
 * @returns {Promise<T>}
 */
export async function withFreePorts(count, start) {
  for (let attempt = 1; ; attempt += 1) {
    const ports = [];
    for (let index = 0; index < count; index += 1) ports.push(await freePort());
    try {
      return await start(ports);
    } catch (error) {
      for (const port of ports) handedOut.delete(port);
      const taken = error instanceof Error && PORT_TAKEN.test(error.message);
      if (!taken || attempt === MAX_START_ATTEMPTS) throw error;
    }
  }
}

/**
 * @param {readonly number[]} ports
 */
export function releasePorts(ports) {
  for (const port of ports) handedOut.delete(port);
}

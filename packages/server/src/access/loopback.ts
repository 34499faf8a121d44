/** Which names and addresses stay on this machine, and which mean whatever machine reads them. */
import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

export function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host.toLowerCase() === "localhost";
  return LOOPBACK.check(host, version === 4 ? "ipv4" : "ipv6");
}

const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::", "[::]"]);

/** To a server: all of its addresses. To a client: its own machine. */
export function isWildcard(host: string): boolean {
  return WILDCARDS.has(host);
}

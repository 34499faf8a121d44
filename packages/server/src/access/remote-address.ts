/** Where a request comes from, as far as can be known: behind a proxy, where the proxy says it came from. */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

/** Only the last entry is the proxy's own word: those before it came with the request. */
export function remoteAddress({ socket, headers }: IncomingMessage, behindProxy: "yes" | "no"): string {
  if (behindProxy === "yes") {
    const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",");
    const last = forwarded.split(",").at(-1)?.trim() ?? "";
    if (isIP(last) !== 0) return last;
  }
  return socket.remoteAddress ?? "";
}

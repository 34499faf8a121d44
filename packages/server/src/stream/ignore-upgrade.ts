/**
 * Serves a request that offers to change the protocol (`Upgrade: h2c`: curl --http2, Java's client) as the HTTP/1.1 request
 * that it is. A server may ignore such an offer (RFC 9110, 7.8), but once it listens for upgrades Node hands over all of
 * them; so the request goes back to the server, without the offer.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Headers of the offer. What else `Connection` named is about this hop, and the default is what a client expects. */
const DROPPED: ReadonlySet<string> = new Set(["upgrade", "http2-settings", "connection"]);

export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** `head`: what was read of the connection after the request's headers. */
export function ignoreUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method = "GET", url = "/", httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (!DROPPED.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[index + 1]}`);
  }
  server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
}

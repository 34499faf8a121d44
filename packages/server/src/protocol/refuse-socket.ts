/**
 * An HTTP answer on a socket that no route will serve: what was not HTTP, or an upgrade that is refused. The connection
 * ends with it, whether the client closes its side or not.
 */
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Env } from "solehold/internal";
import { encodeProblem, type ProblemInput } from "solehold/internal";

/** How long a client has to read the answer before its connection is destroyed. */
const GRACE_MS = 1_000;

export function refuseSocket(socket: Duplex, input: ProblemInput, traceId: string, env: Env): void {
  const { status, body } = encodeProblem(input, traceId);
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Refused"}`,
    "connection: close",
    "content-type: application/problem+json; charset=utf-8",
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  const grace = env.timer(GRACE_MS, () => socket.destroy());
  socket.once("close", () => grace.cancel());
  socket.on("error", () => socket.destroy());
  // The client's own end is only seen by reading.
  socket.resume();
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
}

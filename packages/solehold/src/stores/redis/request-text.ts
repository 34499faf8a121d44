/**
 * A request as it goes over the wire (RESP: the number of parts, then each with its length in bytes). All of it is
 * joined first and then looked at once; a client that measures and encodes each part needs several times as long.
 */
import type { RedisArgument } from "./driver.ts";

/** Null where lengths in characters are not lengths in bytes: then the client has to do it. */
export function requestText(name: string, args: readonly RedisArgument[]): string | null {
  let text = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`;
  for (const arg of args) {
    if (typeof arg !== "string") return null;
    text += `$${arg.length}\r\n${arg}\r\n`;
  }
  return Buffer.byteLength(text) === text.length ? text : null;
}

/**
 * A request as it goes over the wire (RESP: the number of parts, then each with its length in bytes). All of it is
 * joined first and then looked at once; a client that measures and encodes each part needs several times as long.
 */
import type { RedisArgument } from "./driver.ts";

/** What stands before a part, by its length: each piece that is joined costs more than its characters. */
const BEFORE_PART = Array.from({ length: 1_024 }, (_, length) => beforePart(length));

/** Null where lengths in characters are not lengths in bytes: then the client has to do it. */
export function requestText(name: string, args: readonly RedisArgument[]): string | null {
  let text = `*${args.length + 1}${beforePart(name.length)}${name}`;
  for (const arg of args) {
    if (typeof arg !== "string") return null;
    text += BEFORE_PART[arg.length] ?? beforePart(arg.length);
    text += arg;
  }
  text += "\r\n";
  return Buffer.byteLength(text) === text.length ? text : null;
}

function beforePart(length: number): string {
  return `\r\n$${length}\r\n`;
}

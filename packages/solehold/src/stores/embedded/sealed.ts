/**
 * The store's own small values with a checksum behind them. Records bring their own; but a clock, a mark or
 * a counter with one digit changed would be believed, and leases would end too early or versions come back.
 */
import { crc32 } from "node:zlib";

export function seal(text: string): string {
  return `${text} ${crc32(text).toString(16)}`;
}

/** Throws when the value was damaged. */
export function unseal(sealed: string): string {
  const text = sealed.slice(0, sealed.lastIndexOf(" "));
  if (seal(text) === sealed) return text;
  throw new Error(`the store's own value '${sealed}' is damaged`);
}

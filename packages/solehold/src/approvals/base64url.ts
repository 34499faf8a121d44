/**
 * Strict base64url: each byte string has exactly one accepted text. Padding, the other alphabet, white
 * space and stray bits in the last character are refused, because a second spelling of one signature would
 * be a second key in whatever remembers it.
 */

/** The bytes, or null when `text` is not the one canonical spelling of exactly `length` bytes. */
export function decodeBase64Url(text: unknown, length: number): Buffer | null {
  if (typeof text !== "string" || text.length !== Math.ceil((length * 4) / 3)) return null;
  // The decoder skips what it does not know, so only the way back shows that the text was the canonical one.
  const bytes = Buffer.from(text, "base64url");
  return bytes.length === length && bytes.toString("base64url") === text ? bytes : null;
}

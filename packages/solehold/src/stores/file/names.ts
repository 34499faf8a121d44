/**
 * The file of a key. All keys lie side by side in one folder: every character that could mean something to
 * a file system is written as %XX, so no name leaves the folder, hides or meets another.
 *
 * A name that would be too long for a file is represented by its hash; a file beside it holds the key in
 * full, so that also a damaged lease can be listed under its name.
 */
import { createHash } from "node:crypto";
import { DEFAULT_TENANT, type LeaseKey } from "../../core/index.ts";

export const LEASE_SUFFIX = ".lease.json";
export const KEY_SUFFIX = ".key.json";
/** File systems allow 255 bytes, some of them less for encrypted folders (143). */
const MAX_STEM_LENGTH = 130;
const PLAIN = /^[A-Za-z0-9_-]$/;
const HASHED = /^~[0-9a-f]{64}$/;

/** The name of a key's file, without its suffix. */
export function stemOf({ tenant, name }: LeaseKey): string {
  const place = tenant === DEFAULT_TENANT ? "" : `@${tenant}@`;
  const stem = `${place}${encode(name)}`;
  if (stem.length <= MAX_STEM_LENGTH) return stem;
  return `~${createHash("sha256").update(`${tenant}/${name}`).digest("hex")}`;
}

export function isHashedStem(stem: string): boolean {
  return HASHED.test(stem);
}

/** The key of a file that is not hashed; null when no key has such a file. */
export function keyOfStem(stem: string): LeaseKey | null {
  const [, tenant = DEFAULT_TENANT, encoded = stem] = /^@([^@]+)@(.*)$/.exec(stem) ?? [];
  const key = { tenant, name: decode(encoded) };
  return key.name !== "" && stemOf(key) === stem ? key : null;
}

export function printKey({ tenant, name }: LeaseKey): string {
  return `${JSON.stringify({ tenant, name })}\n`;
}

/** Null when the text is not the key of this stem. */
export function parseKey(text: string, stem: string): LeaseKey | null {
  try {
    const { tenant, name } = JSON.parse(text) as LeaseKey;
    const key = { tenant: String(tenant), name: String(name) };
    return stemOf(key) === stem ? key : null;
  } catch {
    return null;
  }
}

/** A dot is plain, unless it comes first: that would hide the file or climb out of the folder. */
function encode(name: string): string {
  let encoded = "";
  for (const character of name) {
    const plain = PLAIN.test(character) || (character === "." && encoded !== "");
    encoded += plain ? character : percent(character);
  }
  return encoded;
}

function percent(character: string): string {
  const bytes = [...new TextEncoder().encode(character)];
  return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

function decode(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return "";
  }
}

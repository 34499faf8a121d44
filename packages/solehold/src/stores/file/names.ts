/**
 * The file of a key. All keys lie side by side in one folder: every character that could mean something to
 * a file system is written as %XX, so no name leaves the folder, hides or meets another.
 *
 * A name that would be too long for a file is represented by its hash; a file beside it holds the key in
 * full, so that also a damaged lease can be listed under its name.
 */
import { createHash } from "node:crypto";
import { DEFAULT_TENANT, type LeaseKey } from "../../core/index.ts";
import { percentEncoded } from "../object/names.ts";

export const KEY_SUFFIX = ".key.json";
/** File systems allow 255 bytes, some of them less for encrypted folders (143). */
const MAX_STEM_LENGTH = 130;

/** The name of a key's file, without its suffix. */
export function stemOf({ tenant, name }: LeaseKey): string {
  const stem = `${tenant === DEFAULT_TENANT ? "" : `@${tenant}@`}${encode(name)}`;
  if (stem.length <= MAX_STEM_LENGTH) return stem;
  return `~${createHash("sha256").update(`${tenant}/${name}`).digest("hex")}`;
}

export function isHashedStem(stem: string): boolean {
  return /^~[0-9a-f]{64}$/.test(stem);
}

/** The key of a file that is not hashed; null when no key has such a file. */
export function keyOfStem(stem: string): LeaseKey | null {
  const [, tenant = DEFAULT_TENANT, encoded = stem] = /^@([^@]+)@(.*)$/.exec(stem) ?? [];
  return checked(stem, () => ({ tenant, name: decodeURIComponent(encoded) }));
}

export function printKey({ tenant, name }: LeaseKey): string {
  return `${JSON.stringify({ tenant, name })}\n`;
}

/** Null when the text is not the key of this stem. */
export function parseKey(text: string, stem: string): LeaseKey | null {
  return checked(stem, () => {
    const { tenant, name } = JSON.parse(text) as LeaseKey;
    return { tenant: String(tenant), name: String(name) };
  });
}

function checked(stem: string, decode: () => LeaseKey): LeaseKey | null {
  try {
    const key = decode();
    return key.name !== "" && stemOf(key) === stem ? key : null;
  } catch {
    return null;
  }
}

/** A dot is plain, unless it comes first: that would hide the file or climb out of the folder. */
function encode(name: string): string {
  const isPlain = (character: string, index: number): boolean =>
    /^[A-Za-z0-9_-]$/.test(character) || (character === "." && index > 0);
  return [...name].map((each, index) => (isPlain(each, index) ? each : percentEncoded(each))).join("");
}

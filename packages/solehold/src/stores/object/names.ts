/**
 * The object of a key: `{prefix}{key}.lease.json`. A plain key is written as it is, slashes included, so
 * that others find it. Whatever a server, a proxy or a URL could fold, decode or walk is written as %XX:
 * dots and slashes that make empty or climbing segments, and every other sign of ASCII.
 *
 * Other tenants than the default one have a folder `@tenant/`; no name can look like it.
 */
import { DEFAULT_TENANT, type LeaseKey } from "../../core/index.ts";

export const LEASE_SUFFIX = ".lease.json";
/** ASCII letters and digits, _ and -, and everything beyond ASCII that XML can carry. */
const PLAIN = /^[A-Za-z0-9_\-\u00a0-\ud7ff\uf900-\ufffd\u{10000}-\u{10ffff}]$/u;

export class ObjectNames {
  readonly #prefix: string;

  /** A missing slash at the end is added. */
  constructor(prefix: string) {
    this.#prefix = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
  }

  nameOf({ tenant, name }: LeaseKey): string {
    return `${this.#folderOf(tenant)}${encode([...name])}${LEASE_SUFFIX}`;
  }

  /** An object that is no lease, for the probe. */
  probeName(id: string): string {
    return `${this.#prefix}%probe/${id}`;
  }

  /** What all objects of names with this prefix begin with; not only they do. */
  listPrefix(tenant: string, namePrefix: string): string {
    const characters = [...namePrefix];
    // How a dot or a slash is written depends on what comes after it, and half a character on the other half.
    const uncertain = /[./\p{Cs}]$/u.test(namePrefix) ? 1 : 0;
    return this.#folderOf(tenant) + encode(characters, characters.length - uncertain);
  }

  /** The key's name of an object of this tenant; null when it is something else. */
  keyNameOf(tenant: string, object: string): string | null {
    const folder = this.#folderOf(tenant);
    if (!object.startsWith(folder) || !object.endsWith(LEASE_SUFFIX)) return null;
    try {
      const name = decodeURIComponent(object.slice(folder.length, -LEASE_SUFFIX.length));
      return name !== "" && this.nameOf({ tenant, name }) === object ? name : null;
    } catch {
      return null;
    }
  }

  #folderOf(tenant: string): string {
    if (tenant === DEFAULT_TENANT) return this.#prefix;
    return `${this.#prefix}@${tenant.replace(/\.$/, "%2E")}/`;
  }
}

/** The first `count` characters, each with regard to its neighbours. */
function encode(characters: readonly string[], count = characters.length): string {
  let encoded = "";
  for (let index = 0; index < count; index += 1) encoded += encodedAt(characters, index);
  return encoded;
}

function encodedAt(characters: readonly string[], index: number): string {
  const character = characters[index] ?? "";
  const [before, after] = [characters[index - 1], characters[index + 1]];
  if (character === "/") {
    const inside = before !== undefined && after !== undefined && before !== "/" && after !== "/";
    return inside ? "/" : "%2F";
  }
  if (character === ".") return before === undefined || before === "/" || after === "/" ? "%2E" : ".";
  return PLAIN.test(character) ? character : percentEncoded(character);
}

/** Every byte as %XX. */
export function percentEncoded(character: string): string {
  const bytes = [...new TextEncoder().encode(character)];
  return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
}

/** For a URL's path: every segment escaped, the slashes between them kept. */
export function escapePath(name: string): string {
  return name.split("/").map(escapePart).join("/");
}

/** As the signatures of both clouds want it: everything but letters, digits and - _ . ~ */
export function escapePart(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * The little of XML that listings and errors of object stores need: elements without attributes that
 * matter, found by name. Not a parser: what it does not find is absent.
 */

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** The texts of all elements of this name, in order. */
export function elements(xml: string, name: string): readonly string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([^<]*)</${name}>`, "g");
  return [...xml.matchAll(pattern)].map(([, text = ""]) => plainText(text));
}

export function element(xml: string, name: string): string | null {
  return elements(xml, name)[0] ?? null;
}

function plainText(text: string): string {
  return text.replace(/&(#x[0-9a-fA-F]+|#\d+|[a-z]+);/g, (whole, name: string) => {
    if (name.startsWith("#x")) return String.fromCodePoint(Number.parseInt(name.slice(2), 16));
    if (name.startsWith("#")) return String.fromCodePoint(Number(name.slice(1)));
    return ENTITIES[name] ?? whole;
  });
}

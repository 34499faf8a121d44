/** Code of a store's page that is no program: statements, rights of a user. Tests run it as it stands there. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PAGES = join(import.meta.dirname, "../../../../docs/stores");

/** The first block of this language under the heading; lines that end with a backslash are joined. */
export function pageBlock(page: string, heading: string, language: "sql" | ""): string {
  const text = readFileSync(join(PAGES, page), "utf8");
  const [, section = ""] =
    new RegExp(`^## ${heading}$([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, "m").exec(text) ?? [];
  const code = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(section)?.[1];
  if (code === undefined) throw new Error(`docs/stores/${page} has no such block under '${heading}'`);
  return code.replaceAll(/\\\n\s*/g, "");
}

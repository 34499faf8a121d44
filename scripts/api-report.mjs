// The public surface of the packages, from the declarations that the compiler wrote: every name that an entry of a package
// exports, with its declaration, without comments and private members. A change of it shows in review. The compiler has no
// stable API to ask, and its output has one shape: each declaration begins at the start of a line, and ends with one.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const PACKAGES = join(import.meta.dirname, "../packages");
/** Promised to nobody: for the other packages of this repository. */
const LEFT_OUT = new Set(["./internal", "./package.json"]);

const EXPORT_LIST = /^export (type )?\{([^}]*)\}(?: from "([^"]+)")?;$/gm;
const EXPORT_ALL = /^export \*(?: as (\w+))? from "([^"]+)";$/gm;
const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:class|interface|type|function|const|let|enum|namespace) (\w+)/gm;
const COMMENT = /\/\*[\s\S]*?\*\//g;
const PRIVATE = /^ +(?:#private;|private .*;)\n/gm;

/** @typedef {ReadonlyMap<string, readonly string[]>} Names From a name to its declarations: a function may have several. */

/** @type {Map<string, { text: string, own: Names }>} */
const files = new Map();

/** From `at` to the end of the declaration: a line that ends one, at the depth at which it began. @param {string} text */
function declarationAt(text, at) {
  let depth = 0;
  for (let index = at; index < text.length; index += 1) {
    const character = text[index];
    if ("{([".includes(character)) depth += 1;
    if ("})]".includes(character)) depth -= 1;
    const endsBlock = character === "}" && /^\n(?! *[|&])/.test(text.slice(index + 1, index + 20));
    if (depth === 0 && (character === ";" || endsBlock)) return text.slice(at, index + 1);
  }
  throw new Error(`a declaration without an end: ${text.slice(at, at + 100)}`);
}

/** @param {string} path */
function read(path) {
  const known = files.get(path);
  if (known !== undefined) return known;
  const text = `${readFileSync(path, "utf8").replaceAll(COMMENT, "").replaceAll(PRIVATE, "")}\n`.replaceAll(
    /\n\s*\n/g,
    "\n",
  );
  const own = new Map();
  for (const match of text.matchAll(DECLARATION)) {
    const declaration = declarationAt(text, match.index).replace(/^export (declare )?/, "");
    own.set(match[1], [...(own.get(match[1]) ?? []), declaration]);
  }
  files.set(path, { text, own });
  return { text, own };
}

const besides = (/** @type {string} */ path, /** @type {string} */ from) =>
  join(dirname(path), from.replace(/\.(?:ts|js)$/, ".d.ts"));

/** All that a module exports. @param {string} path @returns {Names} */
function exportsOf(path) {
  const { text, own } = read(path);
  const found = new Map(own);
  const take = (/** @type {string} */ name, /** @type {readonly string[]} */ declarations) =>
    found.set(name, declarations);
  for (const [, alias, from] of text.matchAll(EXPORT_ALL)) {
    if (!from.startsWith(".")) take(`* from "${from}"`, [`export * from "${from}";`]);
    else if (alias !== undefined) take(alias, [`namespace ${alias} = all of ${from};`]);
    else for (const [name, declarations] of exportsOf(besides(path, from))) take(name, declarations);
  }
  for (const [, , list, from] of text.matchAll(EXPORT_LIST)) {
    for (const item of list
      .split(",")
      .map((each) => each.trim().replace(/^type /, ""))
      .filter(Boolean)) {
      const [name, as = name] = item.split(" as ");
      if (from === undefined || !from.startsWith(".")) {
        if (from !== undefined) take(as, [`export { ${item} } from "${from}";`]);
        continue;
      }
      const declarations = exportsOf(besides(path, from)).get(name);
      if (declarations === undefined)
        throw new Error(`${path} exports ${name}, which ${from} does not declare`);
      take(as, as === name ? declarations : [`${as} = ${name}: ${declarations.join("\n")}`]);
    }
  }
  return found;
}

/** The sections of the page: one for each entry. A name that an entry before it has is only named. */
export function apiReport() {
  const seen = new Map();
  return ["solehold", "simulator", "server"].flatMap((folder) => {
    const { name: packageName, exports } = JSON.parse(
      readFileSync(join(PACKAGES, folder, "package.json"), "utf8"),
    );
    const entries = Object.entries(exports).filter(
      ([entry, { types } = {}]) => !LEFT_OUT.has(entry) && types !== undefined,
    );
    return entries.map(([entry, { types }]) => {
      const names = [...exportsOf(join(PACKAGES, folder, types))].sort(([a], [b]) => (a < b ? -1 : 1));
      const here = entry === "." ? packageName : `${packageName}${entry.slice(1)}`;
      const known = names.filter(([name, declarations]) => seen.get(name)?.text === declarations.join("\n"));
      const added = names.filter((each) => !known.includes(each));
      for (const [name, declarations] of added) seen.set(name, { text: declarations.join("\n"), here });
      const also = known.map(([name]) => `\`${name}\` (${seen.get(name).here})`);
      return [
        `## ${here}`,
        names.length === 1 ? "One name." : `${names.length} names.`,
        ...(added.length === 0
          ? []
          : [`\`\`\`typescript\n${added.map(([, each]) => each.join("\n")).join("\n")}\n\`\`\``]),
        ...(also.length === 0 ? [] : [`Also: ${also.join(", ")}.`]),
      ].join("\n\n");
    });
  });
}

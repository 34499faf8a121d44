/**
 * Lets Vite bundle the simulator, which is made for Node: the few modules of Node that a simulated run uses have small
 * counterparts in this folder, everything else (files, sockets, real stores) is not reached by a run and stays out.
 */
import { join } from "node:path";
import type { Plugin } from "vite";

const FOLDER = import.meta.dirname;
const COUNTERPARTS: Readonly<Record<string, string>> = {
  "node:crypto": join(FOLDER, "crypto.ts"),
  "node:buffer": join(FOLDER, "buffer.ts"),
  "node:path": join(FOLDER, "path.ts"),
  "node:events": join(FOLDER, "events.ts"),
};
/** A module without anything in it. */
const NOTHING = "\0nothing-of-node";

export function nodeForBrowser(): Plugin {
  return {
    name: "node-for-browser",
    enforce: "pre",
    resolveId(source, importer) {
      if (source === "./schemes.ts" && importer?.endsWith("client/connect.ts") === true)
        return join(FOLDER, "no-stores.ts");
      return COUNTERPARTS[source] ?? (source.startsWith("node:") ? NOTHING : null);
    },
    load: (id) => (id === NOTHING ? "module.exports = {};" : null),
  };
}

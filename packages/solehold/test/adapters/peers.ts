/** The packages that the tests of migrations compare with: redlock, etcd3 and @verrou/core, as their users install them. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(import.meta.dirname, "packages/package.json"));

/** A file of an installed package. */
export const peerFile = (path: string): string => join(import.meta.dirname, "packages/node_modules", path);
export const requirePeer = (name: string): unknown => require(name);
export const importPeer = (name: string): Promise<unknown> =>
  import(pathToFileURL(require.resolve(name)).href);

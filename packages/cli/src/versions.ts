/** What runs here. */
import { readFileSync } from "node:fs";

export interface Versions {
  readonly solehold: string;
  readonly node: string;
  readonly platform: string;
}

export function versions(): Versions {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const { version } = manifest as { readonly version: string };
  return { solehold: version, node: process.versions.node, platform: `${process.platform}-${process.arch}` };
}

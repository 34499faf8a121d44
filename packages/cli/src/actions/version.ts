/** What runs here. */
import { readFileSync } from "node:fs";
import type { Invocation } from "../command.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";

export interface Versions {
  readonly solehold: string;
  readonly node: string;
  readonly platform: string;
}

export function versions(): Versions {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const { version: solehold } = manifest as { readonly version: string };
  return { solehold, node: process.versions.node, platform: `${process.platform}-${process.arch}` };
}

export async function version(invocation: Invocation): Promise<number> {
  const { solehold, node, platform } = versions();
  printAnswer(invocation, {
    document: () => ({ solehold, node, platform }),
    lines: () => [`solehold ${solehold} (node ${node}, ${platform})`],
  });
  return EXIT.ok;
}

/** What runs here, and what it can do. */
import { readFileSync } from "node:fs";
import type { Invocation } from "../command.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";
import { completionScript } from "../format/completion-scripts.ts";
import { commandHelp, overview } from "../format/help.ts";
import { commandNamed } from "../parse/arguments.ts";

interface Versions {
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

/** The list of commands, or one of them in full. */
export async function help({ positionals: [name], io, commands }: Invocation): Promise<number> {
  io.stdout.write(name === undefined ? overview(commands) : commandHelp(commandNamed(name, commands)));
  return EXIT.ok;
}

/** A completion script for the shell, made from the same data as the help. */
export async function completion({ positionals: [shell], io, commands }: Invocation): Promise<number> {
  io.stdout.write(completionScript(shell, commands));
  return EXIT.ok;
}

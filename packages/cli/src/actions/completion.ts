/** A completion script for the shell, made from the same data as the help. */
import type { Invocation } from "../command.ts";
import { EXIT } from "../failure.ts";
import { completionScript } from "../format/completion-scripts.ts";

export async function completion({ positionals: [shell], io, catalog }: Invocation): Promise<number> {
  io.stdout.write(completionScript(shell, await catalog.loadAll()));
  return EXIT.ok;
}

/** The list of commands, or one of them in full. */
import type { Invocation } from "../command.ts";
import { EXIT, usageFailure } from "../failure.ts";
import { commandHelp, overview } from "../format/help.ts";
import { didYouMean } from "../parse/suggest.ts";

export async function help({ positionals: [name], io, catalog }: Invocation): Promise<number> {
  if (name === undefined) {
    io.stdout.write(overview(await catalog.loadAll()));
    return EXIT.ok;
  }
  const command = await catalog.load(name);
  if (command === null) {
    throw usageFailure(`unknown command ${name}${didYouMean(name, catalog.names())}: see solehold help`);
  }
  io.stdout.write(commandHelp(command));
  return EXIT.ok;
}

/** What is about to happen, and the question whether it shall. `--yes` is for scripts that have read it. */
import type { Invocation } from "../command.ts";
import { usageFailure } from "../failure.ts";
import { escapeControls } from "../format/terminal.ts";

/** Only the whole word counts. Throws a usage failure when there is no terminal to ask on. */
export async function confirm(
  { io, flags }: Invocation,
  lines: readonly string[],
  question: string,
): Promise<boolean> {
  io.stderr.write(`${lines.map(escapeControls).join("\n")}\n`);
  if (flags.has("yes")) return true;
  const answer = await io.ask(`${question} Type 'yes': `);
  if (answer === null) throw usageFailure("there is no terminal to ask on: read the above, and pass --yes");
  return answer.trim() === "yes";
}

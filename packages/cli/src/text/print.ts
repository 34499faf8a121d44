/** Writing one answer: a JSON document for scripts, lines for people. */
import type { Invocation } from "../command.ts";
import type { JsonValue } from "./lease.ts";

/** `document` is only made when it is asked for, and so are the lines. */
export function printAnswer(
  { io, flags }: Invocation,
  answer: { readonly document: () => JsonValue; readonly lines: () => readonly string[] },
): void {
  io.stdout.write(
    flags.has("json") ? `${JSON.stringify(answer.document())}\n` : `${answer.lines().join("\n")}\n`,
  );
}

/** Writing an answer: a JSON document for scripts, lines for people. */
import type { Invocation } from "../command.ts";
import type { Io } from "../io.ts";
import { escapeControls } from "./terminal.ts";

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [field: string]: JsonValue };

interface Answer {
  readonly document: () => JsonValue;
  /** Control characters are escaped in here. */
  readonly lines: () => readonly string[];
}

/** Lines that carry colours: what others wrote is escaped in them already. */
interface PaintedAnswer extends Omit<Answer, "lines"> {
  readonly painted: () => readonly string[];
}

/** The document and the lines are only made when they are wanted. */
export function printAnswer({ io, flags }: Invocation, answer: Answer | PaintedAnswer): void {
  if (flags.has("json")) {
    io.stdout.write(`${JSON.stringify(answer.document())}\n`);
    return;
  }
  const lines = "painted" in answer ? answer.painted() : answer.lines().map(escapeControls);
  io.stdout.write(`${lines.join("\n")}\n`);
}

/** A line on stderr beside the answer. */
export function printNotice(io: Io, text: string): void {
  io.stderr.write(`solehold: ${escapeControls(text)}\n`);
}

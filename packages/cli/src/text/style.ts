/** Colours, where a person looks: on a terminal, and not when NO_COLOR says otherwise. */
import type { Io, Output } from "../io.ts";

const CODES = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Colour = keyof typeof CODES;

export type Paint = (colour: Colour, text: string) => string;

export function painter(io: Io, output: Output): Paint {
  const { NO_COLOR: noColour, TERM: terminal } = io.env;
  const plain = !output.isTTY || (noColour !== undefined && noColour !== "") || terminal === "dumb";
  return plain ? (_colour, text) => text : (colour, text) => `\u001b[${CODES[colour]}m${text}\u001b[0m`;
}

/** Text that others chose (holders, notes) may not steer the terminal. */
export function printable(text: string): string {
  // biome's rule against control characters in patterns does not apply to a property escape.
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, "\uFFFD");
}

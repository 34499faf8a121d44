/** What a terminal gets: colours where a person looks, and no control characters that others have chosen. */
import type { Io, Output } from "../io.ts";

const CODES = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Colour = keyof typeof CODES;

export type Paint = (colour: Colour, text: string) => string;

/** Colours on a terminal only, and not when NO_COLOR says otherwise. */
export function painter(io: Io, output: Output): Paint {
  const { NO_COLOR: noColour, TERM: terminal } = io.env;
  const plain = !output.isTTY || (noColour !== undefined && noColour !== "") || terminal === "dumb";
  return plain ? (_colour, text) => text : (colour, text) => `\u001b[${CODES[colour]}m${text}\u001b[0m`;
}

/** Text that callers chose (holders, keys, notes) must not steer the terminal: ESC is shown as `\u{1b}`. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

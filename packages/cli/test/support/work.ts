// Commands that write what they do into one shared log, so that two at work at once would show.
import { existsSync, readFileSync } from "node:fs";

/** Writes without end: its name and fence first, then its name every few milliseconds. */
export function endlessWork(
  name: string,
  log: string,
  options: { readonly ignores?: "SIGTERM" } = {},
): string[] {
  const trap = options.ignores === undefined ? "" : "trap '' TERM;";
  const loop = 'echo "$1 begins $SOLEHOLD_FENCE" >> "$2"; while :; do echo "$1" >> "$2"; sleep 0.02; done';
  return ["sh", "-c", `${trap} ${loop}`, "sh", name, log];
}

/** The same, but comes to an end by itself. */
export function shortWork(name: string, log: string): string[] {
  const loop =
    'echo "$1 begins $SOLEHOLD_FENCE" >> "$2"; for i in 1 2 3 4 5 6 7 8 9; do echo "$1" >> "$2"; sleep 0.02; done';
  return ["sh", "-c", loop, "sh", name, log];
}

export function linesOf(log: string): readonly string[] {
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").filter(Boolean) : [];
}

/** The fence with which a command began; null when it has not. */
export function fenceAtBegin(name: string, log: string): bigint | null {
  const line = linesOf(log).find((each) => each.startsWith(`${name} begins `));
  return line === undefined ? null : BigInt(line.slice(`${name} begins `.length));
}

/** Null when `first` wrote nothing any more once `second` had begun; otherwise what it wrote. */
export function overlap(first: string, second: string, log: string): string | null {
  const lines = linesOf(log);
  const begin = lines.findIndex((line) => line.startsWith(`${second} begins`));
  const late =
    begin < 0 ? -1 : lines.findIndex((line, index) => index > begin && line.split(" ")[0] === first);
  return late < 0 ? null : `line ${begin} is ${lines[begin]}, yet line ${late} is ${lines[late]}`;
}

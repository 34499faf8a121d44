/** As much of a shell as is needed to see which commands a page names. */

/** The commands of a block, one a line: continued lines are joined; comments, prompts and `VAR=value` in front are left out. */
export function commandLines(code: string): readonly string[] {
  return code
    .replaceAll(/\\\n\s*/g, " ")
    .split(/\n|&&|\|\||;|\| /)
    .map((line) =>
      line
        .replace(/(^|\s)#.*$/, "")
        .trim()
        .replace(/^\$ /, "")
        .replace(/^(?:\w+=\S* )+/, ""),
    )
    .filter((line) => /^(npx|npm|node|python3|solehold)\b/.test(line) && !/[[…]/.test(line));
}

/** Split at spaces that are not within quotes. A redirection ends the command. */
export function wordsOf(line: string): readonly string[] {
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? "",
  );
  const end = words.findIndex((word) => /^(?:[12&]?>|<|&$)/.test(word));
  return end < 0 ? words : words.slice(0, end);
}

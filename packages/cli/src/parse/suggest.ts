/** "Did you mean": the nearest known word to a mistyped one. */

/** Null when nothing is near enough to be worth saying. */
export function nearest(word: string, known: readonly string[]): string | null {
  let best: { readonly word: string; readonly distance: number } | null = null;
  for (const candidate of known) {
    const distance = candidate.startsWith(word) && word.length > 0 ? 1 : editDistance(word, candidate);
    if (best === null || distance < best.distance) best = { word: candidate, distance };
  }
  if (best === null) return null;
  const tolerated = Math.max(1, Math.floor(Math.max(word.length, best.word.length) / 3));
  return best.distance <= tolerated ? best.word : null;
}

/** " (did you mean 'x'?)", or nothing. */
export function didYouMean(word: string, known: readonly string[], prefix = ""): string {
  const near = nearest(word, known);
  return near === null ? "" : ` (did you mean '${prefix}${near}'?)`;
}

/** How many letters must be inserted, removed, replaced or swapped with their neighbour. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped =
        a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
          ? (beforeLast[column - 2] ?? Number.POSITIVE_INFINITY) + 1
          : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, (last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}

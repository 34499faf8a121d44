/** `work` on every item, at most `width` at a time; the results in order of the items. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  width: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item, index);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(width, items.length) }, worker));
  // Only after all have ended: nobody is told of a failure while other work still goes on.
  for (const each of ended) if (each.status === "rejected") throw each.reason;
  return results;
}

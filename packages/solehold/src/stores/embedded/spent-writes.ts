/**
 * Cuts the chain in which LMDB remembers what was queued. Each link points to the next, so a link that has got
 * into the old part of the heap, as one does while nothing is written, would keep every later one from being
 * collected with the short-lived garbage: all writes, with their promises and answers, would be moved to the old
 * part too, until that is collected. It costs a tenth of the processor time of a busy store.
 *
 * Only a link that LMDB has gone past is cut: the first of a commit, when the next commit is done. If a later
 * LMDB keeps its books in another way, nothing is cut.
 */
import type { RootDatabase } from "lmdb";

interface Link {
  next: unknown;
}

export function cutSpentWrites(root: RootDatabase<string, string>): void {
  let passed: Link | null = null;
  root.on("aftercommit", (event: unknown) => {
    if (passed !== null) passed.next = null;
    const first = (event as { readonly next?: unknown } | undefined)?.next;
    passed = isLink(first) ? first : null;
  });
}

function isLink(value: unknown): value is Link {
  return typeof value === "object" && value !== null && "next" in value && "flagPosition" in value;
}

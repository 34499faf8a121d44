/**
 * LMDB tells of a commit when its thread is done. Of one that is done while the next is being queued it does not: it
 * looks where the next commit begins, and that is not marked before the turn ends. Nobody looks again before the next
 * commit is done, too, and so its answers wait for a whole commit longer, and from then on calls that took turns are answered
 * together.
 *
 * Here LMDB is made to look once more when the next commit has begun, by the function that it gives its thread to call:
 * it only looks at what the thread has marked as committed, so it may be called at any time. If a later LMDB has no such
 * function, answers are late now and then.
 */
import type { RootDatabase } from "lmdb";

/** As the thread calls it: with how far it is. */
type OnProgress = (status: number) => unknown;

interface Threads {
  startWriting(address: number, onProgress: OnProgress): unknown;
}

/** What the thread says when a commit can be seen, and it goes on. */
const GOES_ON = 1;

export function lookForLateAnswers(root: RootDatabase<string, string>): void {
  const threads = (root as { readonly env?: unknown }).env;
  if (!hasThreads(threads)) return;
  const startWriting = threads.startWriting.bind(threads);
  let look: OnProgress | null = null;
  const noticed: Threads["startWriting"] = (address, onProgress) => {
    look = onProgress;
    return startWriting(address, onProgress);
  };
  // The method is its class's, and read-only there.
  Object.defineProperty(threads, "startWriting", { value: noticed });
  // A microtask later the commit that is about to begin has begun.
  root.on("beforecommit", () => queueMicrotask(() => void look?.(GOES_ON)));
}

function hasThreads(value: unknown): value is Threads {
  return (
    typeof value === "object" && value !== null && typeof Reflect.get(value, "startWriting") === "function"
  );
}

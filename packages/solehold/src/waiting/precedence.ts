/**
 * Who goes before whom among those who wait: the higher priority first, and who came first among equals. Nobody is passed any
 * more who has waited for PASSED_FOR_MS, so a low priority costs time and does not starve.
 */
export interface InTurn {
  readonly priority: number;
  /** On the own monotonic clock. */
  readonly sinceMs: number;
}

const PASSED_FOR_MS = 30_000;

/** Where a newcomer stands, behind all whom it may not pass; `from` is where it would stand without a priority. */
export function placeOf(
  priority: number,
  queue: readonly InTurn[],
  nowMs: number,
  from = queue.length,
): number {
  const mayPass = (ahead: InTurn): boolean =>
    ahead.priority < priority && nowMs - ahead.sinceMs < PASSED_FOR_MS;
  const last = queue.slice(0, from).findLastIndex((ahead) => !mayPass(ahead));
  return last + 1;
}

/**
 * Marks tell attempts and tokens of one client apart; which is which does not matter. Here each client's
 * marks are numbered anew by where they occur, so that histories that differ only in them are one.
 */
import { type Attempt, type Client, type ExploreState, MARKS, type SmallRecord } from "./state.ts";

/** For each client, the new number of each mark; null when all are as they should be. */
type Numbering = readonly (readonly number[])[];

function numberingOf({ keys, clients }: ExploreState): Numbering | null {
  const numbers: number[][] = clients.map(() => []);
  const counts = clients.map(() => 0);
  let changed = false;
  const meet = (client: number, mark: number): void => {
    const known = numbers[client];
    if (known === undefined || known[mark] !== undefined) return;
    const next = counts[client] ?? 0;
    known[mark] = next;
    counts[client] = next + 1;
    if (next !== mark) changed = true;
  };
  const meetNonce = (nonce: number | null): void => {
    if (nonce !== null) meet(Math.floor(nonce / MARKS), nonce % MARKS);
  };
  const meetRecord = (record: SmallRecord | null): void => {
    if (record === null) return;
    meet(record.holder, record.mark);
    meetNonce(record.nonce);
  };
  for (const { record } of keys) meetRecord(record);
  clients.forEach(({ beliefs, current, late }, index) => {
    for (const belief of beliefs) if (belief !== null) meet(index, belief.mark);
    for (const attempt of [current, late]) {
      if (attempt === null) continue;
      meet(index, attempt.mark);
      meetNonce(attempt.nonce);
      meetRecord(attempt.next);
    }
  });
  return changed ? numbers : null;
}

/** Null when nothing has to change. */
export function renumberedMarks(state: ExploreState): ExploreState | null {
  const numbering = numberingOf(state);
  if (numbering === null) return null;
  const mark = (client: number, old: number): number => numbering[client]?.[old] ?? old;
  const nonce = (old: number): number => {
    const client = Math.floor(old / MARKS);
    return client * MARKS + mark(client, old % MARKS);
  };
  const record = (old: SmallRecord | null): SmallRecord | null =>
    old === null
      ? null
      : {
          ...old,
          mark: mark(old.holder, old.mark),
          nonce: old.nonce === null ? null : nonce(old.nonce),
        };
  const attempt = (old: Attempt | null, index: number): Attempt | null =>
    old === null
      ? null
      : { ...old, mark: mark(index, old.mark), nonce: nonce(old.nonce), next: record(old.next) };
  const client = (old: Client, index: number): Client => ({
    ...old,
    beliefs: old.beliefs.map((belief) =>
      belief === null ? null : { ...belief, mark: mark(index, belief.mark) },
    ),
    current: attempt(old.current, index),
    late: attempt(old.late, index),
  });
  return {
    keys: state.keys.map((key) => ({ ...key, record: record(key.record) })),
    clients: state.clients.map(client),
  };
}

/**
 * The identity of the data, and how its loss is noticed.
 *
 * A bucket can lose what it acknowledged: somebody deletes or purges it, a machine dies before the server has
 * synced (by default it does so every two minutes), a backup is restored. Then old fences would be handed out
 * again, and sequences, which are the versions here, would repeat. So the data has
 *
 *   an id, drawn when it begins. It is part of every record's key.
 *   the sequence of the stream. Data that lost its last writes is behind what its clients saw.
 *   a floor: the time, in microseconds, at which the data began. A key without a record starts above it.
 *     No key is granted once a microsecond, so data that begins later begins above all earlier fences.
 *   the ids of the server runs that it was seen under, and the floor as it was raised when another run was
 *     first seen. Writes may have been lost between two runs even if no client that is still alive saw them;
 *     a grant that follows an older record must then be above the raised floor.
 *
 * What this cannot see: in a cluster, a loss on a server that this client is not connected to and that no
 * living client witnessed; a server whose clock was set back by more than the time since the data began.
 */
import { StoreError } from "../../store/index.ts";
import { LEAST_RAISE, type Lineage } from "../support/lineage.ts";

/** Servers of a cluster, and their last restarts. */
const MAX_RUNS = 32;

export interface DataState extends Lineage {
  readonly runs: readonly string[];
}

export function encodeState({ id, floor, raised, runs }: DataState): string {
  return JSON.stringify({ id, floor: String(floor), raised: String(raised), runs });
}

/** Null when it is damaged. */
export function decodeState(text: string): DataState | null {
  try {
    const { id, floor, raised, runs } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (typeof id !== "string" || !/^[A-Za-z0-9]+$/.test(id) || !Array.isArray(runs)) return null;
    return { id, floor: BigInt(String(floor)), raised: BigInt(String(raised)), runs: runs.map(String) };
  } catch {
    return null;
  }
}

/** Data that begins now, above everything that `before` can have handed out. */
export function beginning(id: string, nowMicros: bigint, run: string, before: Lineage | null): DataState {
  const least = before === null ? 0n : above(before);
  return { id, floor: highest(nowMicros, least), raised: 0n, runs: [run] };
}

/** The same data under another run of a server. */
export function continued(state: DataState, nowMicros: bigint, run: string): DataState {
  const runs = [...state.runs.filter((each) => each !== run), run].slice(-MAX_RUNS);
  return { ...state, raised: highest(nowMicros, above(state)), runs };
}

/** For a server whose clock went back. */
function above({ floor, raised }: Lineage): bigint {
  return highest(floor, raised) + LEAST_RAISE;
}

export function highest(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

/** Why nothing is granted any more. */
export class DataLossError extends StoreError {
  constructor(address: string, what: string) {
    super(
      "internal",
      `NATS at ${address} lost data (${what}): nothing is read or written until acceptDataLoss() is called or the store is opened anew`,
      { outcome: "not-applied" },
    );
  }
}

/**
 * Names that are wanted together. Now and then a process asks for two or three of them at once, in an order of its own, and
 * releases them after a while.
 */
import type { LeaseSet } from "solehold/internal";
import type { RandomStream } from "../world/random.ts";
import type { Process } from "./process.ts";

export const SET_NAMES: readonly string[] = ["set1", "set2", "set3"];

export interface SetOptions {
  readonly ttlMs: number;
  readonly onSet: (process: Process, set: LeaseSet) => void;
  /** Calls back after so long, unless the process has died. */
  readonly later: (process: Process, inMs: number, then: () => void) => void;
}

export async function askForSet(process: Process, random: RandomStream, options: SetOptions): Promise<void> {
  const { ttlMs } = options;
  const names = inAnyOrder(random).slice(0, random.whole(2, SET_NAMES.length));
  const wait = random.chance(0.8) ? Math.ceil(ttlMs * random.between(0.5, 5)) : 0;
  const keepMs = ttlMs * random.between(0, 1.5);
  const set = await process.leases.acquireAll(names, { ttl: ttlMs, wait });
  options.onSet(process, set);
  options.later(process, keepMs, () => void set.release());
}

export function inAnyOrder(random: RandomStream): readonly string[] {
  const left = [...SET_NAMES];
  return SET_NAMES.map(() => left.splice(random.whole(0, left.length - 1), 1)[0] ?? "");
}

/**
 * Acquiring with patience: attempt after attempt until it is granted, hopeless, aborted or out of time. Over a store
 * this process keeps a line of its own for each key, first come, first served, and only the head of a line tries; over
 * a server see remote/servers-line.ts.
 */
import { keyId, type LeaseKey } from "../core/index.ts";
import type { Env } from "../env/index.ts";
import type { AppliedOutcome, CommandOutcome, LeaseExecutor, WaitOptions } from "../executor/index.ts";
import { Room } from "./key-wait-queue.ts";

export interface Patience {
  readonly key: LeaseKey;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  attempt(wait?: WaitOptions): Promise<CommandOutcome>;
}

/** Whether an acquire that was not confirmed may have been carried out. */
export function mayBeGranted(outcome: CommandOutcome): boolean {
  return outcome.kind === "unsettled" && outcome.outcome === "unknown";
}

/** One waiter's place in a line. */
export interface Place {
  /** Something has changed: it is the head now, or should look. Null while it is not waiting to hear of it. */
  wake: (() => void) | null;
}

/** Who waits for a key in this process. */
export interface Line {
  /** In the order in which they came; the first may try. */
  readonly places: Place[];
  /** What is known of the key. Made for the first who has to wait. */
  room: Room | null;
}

export interface LinesOptions {
  readonly env: Env;
  readonly executor: LeaseExecutor;
}

export class Lines {
  readonly #options: LinesOptions;
  readonly #lines = new Map<string, Line>();
  /** Rooms that nobody is in, the oldest first. */
  readonly #resting = new Set<Room>();

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  async wait(patience: Patience): Promise<AppliedOutcome> {
    const id = keyId(patience.key);
    const line: Line = this.#lines.get(id) ?? { places: [], room: null };
    this.#lines.set(id, line);
    const { places } = line;
    const place: Place = { wake: null };
    places.push(place);
    const startedMs = this.#options.env.monotonicMs();
    try {
      let first: CommandOutcome | null = null;
      if (line.room === null && places[0] === place) {
        first = await patience.attempt();
        if (first.kind === "applied") {
          // Others may have come meanwhile.
          this.#lines.get(id)?.room?.won(first);
          return first;
        }
      }
      line.room ??= new Room(patience.key, places, this.#options, this.#resting);
      return await line.room.wait(place, patience, startedMs, first);
    } finally {
      places.splice(places.indexOf(place), 1);
      places[0]?.wake?.();
      if (places.length === 0) {
        if (line.room === null) this.#lines.delete(id);
        else line.room.rest(() => this.#lines.delete(id));
      }
    }
  }

  close(): void {
    for (const room of [...this.#resting]) room.close();
  }
}

/** Watches a recorded run from outside: after each event it looks at beliefs and records, and changes nothing. */
import { keyId, type LeaseKey, type LeaseRecord, recordFence } from "solehold/internal";
import type { Process } from "../full/process.ts";
import type { Holding } from "../mutations.ts";
import type { ResourceStep } from "../oracles/oracle.ts";
import type { StoreEngine } from "../store/engine.ts";
import type { World } from "../world/world.ts";
import type { TracedBelief, TracedRecord, TracedWrite } from "./trace.ts";

interface OpenBelief {
  readonly process: Process;
  readonly holding: Holding;
  readonly fromMs: number;
  /** The latest end that is known, by what was left when it was last looked at. */
  latestMs: number;
  toMs: number | null;
  abortedMs: number | null;
}

export class Tracer {
  readonly #world: World;
  readonly #engine: StoreEngine;
  readonly #keys: readonly LeaseKey[];
  readonly #beliefs: TracedBelief[] = [];
  readonly #open = new Set<OpenBelief>();
  readonly #seen = new Map<string, LeaseRecord | null>();
  #takeovers = 0;
  readonly records: TracedRecord[] = [];
  readonly writes: TracedWrite[] = [];

  constructor(world: World, engine: StoreEngine, keys: readonly LeaseKey[]) {
    this.#world = world;
    this.#engine = engine;
    this.#keys = keys;
  }

  /** Those that ended, and those that did not. */
  get beliefs(): readonly TracedBelief[] {
    return [...this.#beliefs, ...[...this.#open].map(beliefOf)];
  }

  onBelief(process: Process, holding: Holding): void {
    const fromMs = this.#world.nowMs;
    if (holding.remaining() > 0)
      this.#open.add({ process, holding, fromMs, latestMs: fromMs, toMs: null, abortedMs: null });
  }

  onGuardedWrite({ key, fence, accepted }: Omit<ResourceStep, "kind">, process: string): void {
    const { nowMs: atMs } = this.#world;
    this.writes.push({ atMs, who: laneOf(process), key: key.name, fence: String(fence), accepted });
  }

  afterEvent(): void {
    for (const each of this.#open) this.#look(each);
    const takeovers = this.#engine.takeovers.length;
    for (const key of this.#keys) {
      const record = this.#engine.recordOf(key);
      const id = keyId(key);
      // After a takeover the same record ends at another time.
      if (record === (this.#seen.get(id) ?? null) && takeovers === this.#takeovers) continue;
      this.#seen.set(id, record);
      this.records.push(this.#recordOf(key, record));
    }
    this.#takeovers = takeovers;
  }

  #look(open: OpenBelief): void {
    const { process, holding } = open;
    const { nowMs } = this.#world;
    const leftMs = process.alive ? holding.remaining() : 0;
    if (leftMs > 0) open.latestMs = nowMs + leftMs / process.machine.clock.rate;
    // It may have run out since the last event, on a machine where nothing happens.
    else open.toMs ??= Math.min(nowMs, open.latestMs);
    if (process.alive && !holding.lease.signal.aborted) return;
    open.abortedMs = nowMs;
    this.#open.delete(open);
    this.#beliefs.push(beliefOf(open));
  }

  #recordOf({ name: key }: LeaseKey, record: LeaseRecord | null): TracedRecord {
    const { nowMs: atMs } = this.#world;
    if (record === null)
      return { atMs, key, state: "absent", holder: "", fence: "0", endsMs: atMs, successor: null };
    const { state, holder, expiresAtMs, handoff } = record;
    const endsMs = atMs + (expiresAtMs - this.#engine.nowMs()) / this.#engine.machine.clock.rate;
    const fence = String(recordFence(record));
    return { atMs, key, state, holder, fence, endsMs, successor: handoff?.successor ?? null };
  }
}

function beliefOf({ process, holding, fromMs, toMs, abortedMs }: OpenBelief): TracedBelief {
  const { key, fence, signal } = holding.lease;
  const over = process.alive ? (signal.aborted ? String(holding.lease.lossReason) : "expired") : "crashed";
  const end = toMs === null ? null : over;
  return { who: laneOf(process.name), key: key.name, fence: String(fence), fromMs, toMs, abortedMs, end };
}

/** All lives of a machine are in one lane. */
export function laneOf(process: string): string {
  return process.split(".")[0] ?? process;
}

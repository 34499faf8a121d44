/**
 * The audit files of a run's machines, and the real trail over them, opened by one life of a process after the other:
 * each takes over what the one before it left in the store's notes. A life whose trail cannot be opened tries again,
 * as a supervisor would start it again.
 */
import { delay } from "../../env/index.ts";
import { type AuditEntry, FileAuditTrail } from "../../service/audit/index.ts";
import { missingEvents } from "../../service/audit/notes.ts";
import { queryFolder } from "../../service/audit/scan.ts";
import { type LeaseStore, StoreError } from "../../store/index.ts";
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { StoreNotebooks } from "../store/notebooks.ts";
import type { SimulatedEnv } from "../world/env.ts";
import { RandomStream } from "../world/random.ts";
import type { World } from "../world/world.ts";
import { SimulatedDisk } from "./disk.ts";

export interface TrailsOptions {
  readonly world: World;
  readonly config: SimConfig;
  readonly notebooks: StoreNotebooks;
  readonly sometimes: (situation: Situation) => void;
}

/** More than a run makes. */
export const MOST_ENTRIES = 10_000;

/** The place is ready, and its lock is that a machine runs one process at a time. */
const NO_LOCK = { release: async (): Promise<void> => undefined };

/** Null where the store keeps no notes, or nothing goes through a service: the audit is then in memory. */
export function trailsOf(options: TrailsOptions): Trails | null {
  const { entry, route, notes } = options.config;
  return notes === "yes" && (entry === "server" || route === "service") ? new Trails(options) : null;
}

export class Trails {
  readonly #options: TrailsOptions;
  readonly #disks = new Map<string, SimulatedDisk>();
  readonly #accessMs: number;
  readonly #segmentBytes: number;
  readonly #anchorEvery: number;

  constructor(options: TrailsOptions) {
    const { seed, ttlMs } = options.config;
    this.#options = options;
    const random = new RandomStream(seed, "audit files");
    this.#accessMs = random.pick([0.05, 1, ttlMs / 10, ttlMs / 3]);
    this.#segmentBytes = random.pick([1_024, 4_096, 2 ** 20]);
    this.#anchorEvery = random.pick([2, 10, 1_000]);
  }

  /** Resolves when the trail is open and has what was left; never when its process dies before. */
  async open(env: SimulatedEnv, store: LeaseStore): Promise<FileAuditTrail> {
    const { world, config, notebooks, sometimes } = this.#options;
    const { name } = env.machine;
    const losesPower = (): boolean => {
      if (notebooks.left(name).length > 0) sometimes("a process died and left notes in the store");
      return world.choices.fires(`power loss ${name}`, 0.5);
    };
    const disk = this.#diskOf(name).mountedBy(env, losesPower);
    for (;;) {
      try {
        const trail = await FileAuditTrail.openAt(
          {
            folder: folderOf(name),
            durability: "before-reply",
            segmentBytes: this.#segmentBytes,
            anchorEvery: this.#anchorEvery,
            env,
            disk,
            ...(store.notebook === undefined ? {} : { notebook: store.notebook.bind(store) }),
          },
          { trailId: name, lock: NO_LOCK, reader: disk },
        );
        if (trail.takenOver > 0) sometimes("notes that a dead process had left came into the audit");
        if (trail.recovered !== null) sometimes("a line of the audit that a crash had torn was cut off");
        return trail;
      } catch (error) {
        // Another try may go better with a store that did not answer; a damaged trail stays damaged.
        if (!(error instanceof StoreError)) throw error;
        await delay(env, config.callTimeoutMs);
      }
    }
  }

  /** All that is in a machine's files, in order. */
  entriesOf(machine: string): Promise<readonly AuditEntry[]> {
    const { reader } = this.#diskOf(machine);
    return queryFolder(folderOf(machine), { limit: MOST_ENTRIES }, Number.MAX_SAFE_INTEGER, reader);
  }

  /** Events that are in a machine's notes alone. */
  async unsaved(machine: string): Promise<number> {
    const { reader } = this.#diskOf(machine);
    const left = this.#options.notebooks.left(machine);
    return (await missingEvents(reader, folderOf(machine), left)).length;
  }

  #diskOf(machine: string): SimulatedDisk {
    const known = this.#disks.get(machine);
    if (known !== undefined) return known;
    const { world } = this.#options;
    const random = world.choices.stream(`audit disk ${machine}`);
    const disk = new SimulatedDisk({ world, accessMs: this.#accessMs, random });
    this.#disks.set(machine, disk);
    return disk;
  }
}

function folderOf(machine: string): string {
  return `/audit/${machine}`;
}

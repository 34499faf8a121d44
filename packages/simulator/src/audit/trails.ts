/**
 * The audit files of a run's machines, and the real trail over them, opened by one life of a process after the other:
 * each goes on where the one before it ended.
 */
import { type AuditEntry, FileAuditTrail, queryFolder } from "solehold/internal";
import type { SimConfig } from "../config.ts";
import type { Mutations } from "../mutations.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { SimulatedEnv } from "../world/env.ts";
import { RandomStream } from "../world/random.ts";
import type { World } from "../world/world.ts";
import { SimulatedDisk } from "./disk.ts";

export interface TrailsOptions {
  readonly world: World;
  readonly config: SimConfig;
  readonly sometimes: (situation: Situation) => void;
  readonly auditDisk?: Mutations["auditDisk"];
}

/** More than a run makes. */
export const MOST_ENTRIES = 10_000;

/** The place is ready, and its lock is that a machine runs one process at a time. */
const NO_LOCK = { release: async (): Promise<void> => undefined };

/** Null where the audit is in memory, or nothing goes through a service. */
export function trailsOf(options: TrailsOptions): Trails | null {
  const { entry, route, auditIn } = options.config;
  return auditIn === "files" && (entry === "server" || route === "service") ? new Trails(options) : null;
}

const HEALED_ACCESS_MS = 1;

export class Trails {
  readonly #options: TrailsOptions;
  readonly #disks = new Map<string, SimulatedDisk>();
  #accessMs: number;
  #isHealed = false;
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

  /** Resolves when the trail is open; never when its process dies before. */
  async open(env: SimulatedEnv): Promise<FileAuditTrail> {
    const { world, sometimes, auditDisk } = this.#options;
    const { faults } = this.#options.config;
    const { name } = env.machine;
    const losesPower = (): boolean => world.choices.fires(`power loss ${name}`, 0.5);
    let isOpen = false;
    // What fails while a trail is opened keeps its process from starting, which is another story.
    const failsToSync = (): boolean =>
      isOpen &&
      !this.#isHealed &&
      faults.has("fsync-fail") &&
      world.choices.fires(`fsync-fail ${name}`, 0.08);
    const mounted = this.#diskOf(name).mountedBy(env, losesPower, failsToSync);
    const disk = { ...mounted, ...auditDisk?.(mounted) };
    const trail = await FileAuditTrail.openAt(
      {
        folder: folderOf(name),
        durability: "before-reply",
        segmentBytes: this.#segmentBytes,
        anchorEvery: this.#anchorEvery,
        env,
        disk,
      },
      { trailId: name, lock: NO_LOCK, reader: disk },
    );
    isOpen = true;
    if (trail.recovered !== null) sometimes("a line of the audit that a crash had torn was cut off");
    return trail;
  }

  /** From here on the disks are fast: an audit that takes longer than a ttl leaves no lease that is still held. */
  heal(): void {
    this.#isHealed = true;
    this.#accessMs = Math.min(this.#accessMs, HEALED_ACCESS_MS);
  }

  /** All that is in a machine's files, in order. */
  entriesOf(machine: string): Promise<readonly AuditEntry[]> {
    const { reader } = this.#diskOf(machine);
    return queryFolder(folderOf(machine), { limit: MOST_ENTRIES }, Number.MAX_SAFE_INTEGER, reader);
  }

  #diskOf(machine: string): SimulatedDisk {
    const known = this.#disks.get(machine);
    if (known !== undefined) return known;
    const { world } = this.#options;
    const random = world.choices.stream(`audit disk ${machine}`);
    const disk = new SimulatedDisk({ world, accessMs: () => this.#accessMs, random });
    this.#disks.set(machine, disk);
    return disk;
  }
}

function folderOf(machine: string): string {
  return `/audit/${machine}`;
}

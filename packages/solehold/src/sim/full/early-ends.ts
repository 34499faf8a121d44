/** A store whose ends are seen before they are safe, as one run of the full tier has it: its disk, and its crashes. */
import type { SimConfig } from "../config.ts";
import type { Situation } from "../oracles/oracle.ts";
import type { EarlyWritesOptions, LogMistake } from "../store/early-writes.ts";
import type { AppliedWrite, StoreEngine } from "../store/engine.ts";
import { WriteLog } from "../store/log.ts";
import type { Machine } from "../world/machine.ts";
import type { World } from "../world/world.ts";
import { StoreCrashes } from "./store-crashes.ts";

const LONGEST_STALL_TTLS = 1.5;

export interface EarlyEndsOptions {
  readonly world: World;
  readonly config: SimConfig;
  readonly machine: Machine;
  readonly mistake: LogMistake | null;
  readonly engine: () => StoreEngine;
  readonly healed: () => boolean;
  readonly sometimes: (situation: Situation) => void;
  readonly onTakenBack: (write: AppliedWrite) => void;
}

export function earlyEnds(options: EarlyEndsOptions): EarlyWritesOptions {
  const { world, config, machine, mistake, sometimes } = options;
  const crashes = new StoreCrashes(options);
  const longestMs = config.ttlMs * LONGEST_STALL_TTLS;
  const stalls = { rate: config.stallRate, longestMs, isOver: options.healed };
  return {
    log: new WriteLog({ world, machine, diskMs: config.diskMs, stalls }),
    mistake,
    onLogged: (form, safeAtMs) => crashes.onLogged(form, safeAtMs),
    onBuiltUpon: () => sometimes("an end was built upon before it was safe"),
    onTakenBack: (write, seen) => {
      if (seen === "yes") sometimes("a crash took back an end that others had seen");
      options.onTakenBack(write);
    },
  };
}

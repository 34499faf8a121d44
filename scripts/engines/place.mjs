// Where an engine lives while it is being started: a data folder, ports, and the processes made so far. If the start
// fails at any step, all of it is given back.
import { createDataDir, removeDataDir } from "./folders.mjs";
import { releasePorts, withFreePorts } from "./ports.mjs";
import { ManagedProcess } from "./processes.mjs";

/**
 * @typedef {object} Place
 * @property {string} dataDir
 * @property {readonly number[]} ports
 * @property {(spec: import("./processes.mjs").ProcessSpec) => ManagedProcess} define A process that belongs here.
 * @property {() => Promise<void>} vacate Kills the processes, deletes the folder, gives back the ports.
 */

/**
 * @template T
 * @param {{ readonly name: string, readonly dataDir: string | undefined, readonly portCount: number }} wanted
 * @param {(place: Place) => Promise<T>} start
 * @returns {Promise<T>}
 */
export function withPlace({ name, dataDir: wantedDir, portCount }, start) {
  return withFreePorts(portCount, async (ports) => {
    const dataDir = createDataDir(name, wantedDir);
    /** @type {ManagedProcess[]} */
    const processes = [];
    /** @type {Place} */
    const place = {
      dataDir,
      ports,
      define(spec) {
        const defined = new ManagedProcess(spec);
        processes.push(defined);
        return defined;
      },
      async vacate() {
        await Promise.all(processes.map((each) => each.kill()));
        removeDataDir(dataDir);
        releasePorts(ports);
      },
    };
    try {
      return await start(place);
    } catch (error) {
      await place.vacate();
      throw error;
    }
  });
}

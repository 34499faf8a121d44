// An engine made of its processes: what is the same for all of them. Each engine's own file says how its processes
// are started and when they answer.

/** @typedef {import("./processes.mjs").ManagedProcess} ManagedProcess */

/**
 * @typedef {object} EngineSpec
 * @property {import("./index.mjs").EngineName} name
 * @property {string} version
 * @property {readonly string[]} urls
 * @property {Readonly<Record<string, string>>} [credentials]
 * @property {import("./place.mjs").Place} place
 * @property {readonly ManagedProcess[]} processes Those that depend on others come after them.
 * @property {"together" | "in turn"} [startOrder] "in turn": each must answer before the next starts.
 * @property {() => Promise<void>} [prove] Runs after each start: shows that the engine can do what the tests need.
 * @property {() => Promise<void>} [beforeVacate] Frees what would outlive the processes and the folder.
 */

/**
 * Starts those processes that do not run yet and hands out the engine once it answers.
 * @param {EngineSpec} spec
 * @param {number} startedAt `performance.now()` when the start began, before any preparation of data.
 * @returns {Promise<import("./index.mjs").Engine>}
 */
export async function startEngine(spec, startedAt) {
  const { name, version, urls, credentials = {}, place, processes } = spec;
  const [url] = urls;
  if (url === undefined) throw new Error(`${name} has no URL`);
  /** @type {Promise<void> | undefined} */
  let ending;

  async function startAll() {
    const absent = processes.filter((each) => !each.running);
    if (spec.startOrder === "in turn") for (const each of absent) await each.start();
    else await Promise.all(absent.map((each) => each.start()));
    await spec.prove?.();
  }

  async function end() {
    // The data goes too, so there is nothing that a graceful end could save.
    await Promise.all(processes.map((each) => each.kill()));
    await spec.beforeVacate?.();
    await place.vacate();
  }

  await startAll();
  return {
    name,
    version,
    url,
    urls,
    credentials,
    dataDir: place.dataDir,
    processes,
    readyMs: performance.now() - startedAt,
    stop() {
      ending ??= end();
      return ending;
    },
    async pause() {
      await Promise.all(processes.map((each) => each.pause()));
    },
    async resume() {
      await Promise.all(processes.map((each) => each.resume()));
    },
    async kill() {
      await Promise.all(processes.map((each) => each.kill()));
    },
    async restart() {
      if (ending !== undefined) throw new Error(`${name} was stopped and its data deleted: start a new one`);
      if (spec.startOrder === "in turn") for (const each of [...processes].reverse()) await each.stop();
      else await Promise.all(processes.map((each) => each.stop()));
      await startAll();
    },
  };
}

// What a run of the test command does besides the build and the tests: everything, or for a named part of the tests
// as little as that part needs.

/**
 * @typedef {object} TestPlan
 * @property {boolean} runsChecks Lint, layers, types of the tests, pages, packages, rows of the documents.
 * @property {boolean} preparesAll Engines, browser and tools are made ready for everyone. Without it each test starts
 *   the engines that it asks for.
 * @property {boolean} installsAdapted The packages that adapters are tested with.
 */

/**
 * An option alone (`--reporter=verbose`) narrows nothing; a path, a name or `-t` does.
 * @param {readonly string[]} args @returns {TestPlan}
 */
export function planOf(args) {
  const isNarrowed = args.some(
    (arg) => !arg.startsWith("-") || /^(-t|--testNamePattern|--changed)/.test(arg),
  );
  const namesAdapted = args.some((arg) => /adapters|guards|docs/.test(arg));
  // The types of the tests need what is adapted, too.
  return { runsChecks: !isNarrowed, preparesAll: !isNarrowed, installsAdapted: !isNarrowed || namesAdapted };
}

/**
 * The engines to end after the run: those that somebody had running already stay.
 * @template {string} Name
 * @param {readonly Name[]} names @param {readonly string[]} wasUp @returns {Name[]}
 */
export function startedFor(names, wasUp) {
  return names.filter((name) => !wasUp.includes(name));
}

// The ledger as a page, and what is wrong with it. Both are functions of artifacts/ledger.json alone.

/** @param {readonly string[]} head @param {readonly (readonly unknown[])[]} rows */
const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
const count = (/** @type {number} */ number) => number.toLocaleString("en-US");
const unfound = (title, bugs) =>
  bugs.filter(({ oracle }) => oracle === null).map(({ bug }) => `${title}: the canary ${bug} was NOT found`);
const nothing = (title, ran) => (ran > 0 ? [] : [`${title}: nothing ran`]);
const broken = (title, violations) => (violations === 0 ? [] : [`${title}: ${violations} violations`]);

/** Why the ledger is red; nothing when it is green. @type {typeof import("./page.d.mts").problemsOf} */
export function problemsOf({ simulations, bugs, explorer, explorerBugs, model, soaks, soakBugs }) {
  return [
    ...nothing("simulation", simulations.length),
    ...simulations.flatMap(({ title, seeds, violations, missed, nondeterministic }) => [
      ...nothing(`simulation, ${title}`, seeds),
      ...broken(`simulation, ${title}`, violations),
      ...missed.map((situation) => `simulation, ${title}: never reached: ${situation}`),
      ...nondeterministic.map((seed) => `simulation, ${title}: two runs of seed ${seed} differed`),
    ]),
    ...nothing("planted bugs", bugs.length),
    ...unfound("planted bugs", bugs),
    ...nothing("explorer", explorer?.states ?? 0),
    ...broken("explorer", explorer?.violations ?? 0),
    ...nothing("explorer, planted bugs", explorerBugs?.length ?? 0),
    ...unfound("explorer", explorerBugs ?? []),
    ...nothing("model", model.traces),
    ...broken("model", model.violations),
    ...model.witnesses
      .filter((name) => !(model.reached[name] > 0))
      .map((name) => `model: never reached: ${name}`),
    ...nothing("model, mistakes", model.bugs.length),
    ...unfound("model", model.bugs),
    ...nothing("soaks", soaks.length),
    ...soaks.flatMap(({ engine, accepted, violations }) => [
      ...nothing(`soak, ${engine}`, accepted),
      ...violations.map((violation) => `soak, ${engine}: ${violation}`),
    ]),
    ...nothing("soak, planted mistakes", soakBugs.length),
    ...unfound("soak", soakBugs),
  ];
}

const INTRODUCTION = `What was run, on what, and what was seen. It is red if a promise was broken, if a planted mistake (a canary) was
not found, or if a part ran nothing. \`npm run ledger -- --check\` says whether it speaks of the source that you have.
How each part works: [simulation](simulation.md), [the protocol](protocol.md).`;

/** @type {typeof import("./page.d.mts").pageOf} */
export function pageOf(ledger) {
  const { simulations, bugs, explorer, explorerBugs, model, soaks, soakBugs } = ledger;
  const problems = problemsOf(ledger);
  const canaries = [...bugs, ...(explorerBugs ?? []), ...model.bugs, ...soakBugs];
  const found = canaries.filter(({ oracle }) => oracle !== null).length;
  const [{ sometimes = {} } = {}] = simulations;
  const { remarks = [] } = ledger;
  return `${[
    "# Ledger of proof",
    "<!-- Made by `npm run ledger`. Run that, do not edit this. -->",
    INTRODUCTION,
    problems.length === 0
      ? `**Green**: ${found} of ${canaries.length} canaries found.`
      : `**RED**:\n\n${problems.map((problem) => `- ${problem}`).join("\n")}`,
    table(
      ["", ""],
      [
        ["command", `\`${ledger.command}\``],
        ["commit", `\`${ledger.commit}\``],
        ["sha256 of the source", `\`${ledger.sources.sha256}\` over ${ledger.sources.folders.join(", ")}`],
        ["begun", `${ledger.startedAt}, took ${count(ledger.seconds)} s`],
        ["Node.js", ledger.node],
        ["machine", ledger.machine],
      ],
    ),
    ...remarks,
    "## Simulation",
    table(
      ["worlds", "command", "seeds", "violations", "situations reached"],
      simulations.map(({ title, command, seeds, violations, sometimes: each }) => [
        title,
        `\`${command}\``,
        count(seeds),
        violations,
        `${Object.values(each).filter((times) => times > 0).length} of ${Object.keys(each).length}`,
      ]),
    ),
    "How often the first of these runs reached each situation:",
    table(
      ["situation", "times"],
      Object.entries(sometimes).map(([name, times]) => [name, count(times)]),
    ),
    "## Planted bugs",
    "Each is a mistake in the shipped code, switched on; the simulation must object (`solehold sim --planted-bugs`).",
    table(
      ["planted bug", "found by", "after seeds"],
      bugs.map(({ bug, oracle, seedsTried }) => [bug, oracle ?? "NOT FOUND", seedsTried]),
    ),
    "## Explorer",
    "Every state of small worlds (`solehold explore`, `solehold explore --bugs`).",
    table(
      ["world", "states", "depth"],
      (explorer?.worlds ?? []).map(({ world, states, depth }) => [world, count(states), depth]),
    ),
    table(
      ["planted bug", "world", "found by", "depth"],
      (explorerBugs ?? []).map(({ bug, world, oracle, depth }) => [bug, world, oracle ?? "NOT FOUND", depth]),
    ),
    "## Model",
    `[spec/lease.qnt](../spec/lease.qnt): ${count(model.traces)} random traces of 60 steps, ${model.violations} violations.`,
    table(
      ["situation", "traces that reach it"],
      model.witnesses.map((name) => [name, count(model.reached[name] ?? 0)]),
    ),
    table(
      ["mistake", "invariant that it breaks"],
      model.bugs.map(({ bug, oracle }) => [bug, oracle ?? "NOT FOUND"]),
    ),
    "## Soaks",
    `Real processes on real engines (\`npm run soak\`), stopped, continued and killed at random, the engine restarted under them,
half of the times by a kill. Every accepted write must be in the counter, and fences must grow.`,
    table(
      [
        "engine",
        "version",
        "seconds",
        "grants",
        "writes",
        "refused",
        "stops",
        "kills",
        "restarts",
        "violations",
      ],
      soaks.map((each) => [
        each.engine,
        each.version,
        each.seconds,
        ...[each.grants, each.accepted, each.refused, each.stops, each.kills, each.restarts].map(count),
        each.violations.length,
      ]),
    ),
    "With a mistake planted, the soak must object:",
    table(
      ["planted mistake", "first objection"],
      soakBugs.map(({ bug, oracle }) => [bug, oracle ?? "NOT FOUND"]),
    ),
  ].join("\n\n")}\n`;
}

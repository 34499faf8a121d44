// Contenders take turns: after a warm-up each runs for a short round, A B C C B A A B C ..., so that all of them meet the
// same noise of the machine; with one in flight they take turns within a round, too. To and fro, because it matters who ran
// just before: its garbage is collected, and its pages are written, in the time of the next. What is reported is the median
// of the rounds, and ratios are medians of the ratios of neighbouring rounds. Rates of different runs are not comparable;
// ratios of one run are.
import { cpuOfProcesses } from "./cpu.mjs";
import { median, medianRatio, percentile } from "./statistics.mjs";

/**
 * The first warm-up also compiles the code, of which some contenders have much more than others: with many in flight,
 * because what runs thousands of times a second is compiled in a second or two, and what waits for answers is not.
 */
const FIRST_WARM_UP = { inFlight: 64, ms: 1_500 };
const isCompiled = new WeakSet();

/**
 * Into so many slices a round is cut when one is in flight: a lone operation's latency follows whatever else the machine
 * does for the moment, and two rounds are too far apart to meet the same. With many in flight a slice would be over
 * before the first answers are.
 */
const SLICES_OF_A_LONE_ROUND = 6;

/**
 * A contender is `{ name, role, turn, against }`: `turn(worker, index)` does the unit of work once; `role` is "ours",
 * "floor", "peer", "limit" (what ours could be at best) or "other"; `against` names the floor that it is compared with
 * (default: the first); a peer with `promises: "less"` is shown, but nobody has to be ahead of it.
 */
export async function compete({ title, unit = "pairs", inFlight, contenders, pace, serverPids = [], say }) {
  say(title);
  const { rounds, roundMs, warmUpMs } = pace;
  for (const { turn } of contenders) {
    if (!isCompiled.has(turn)) await runRound(turn, FIRST_WARM_UP.inFlight, FIRST_WARM_UP.ms, []);
    isCompiled.add(turn);
    await runRound(turn, inFlight, warmUpMs, []);
  }
  const results = contenders.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? contenders : contenders.toReversed();
    const all = await oneRound({ contenders: order, inFlight, roundMs, serverPids });
    for (const [place, result] of all.entries()) results[contenders.indexOf(order[place])].push(result);
  }
  const floorOf = ({ against }) =>
    contenders.findIndex(({ name, role }) => (against === undefined ? role === "floor" : name === against));
  return {
    title,
    unit,
    inFlight,
    contenders: contenders.map((contender, index) => {
      const floor = results[floorOf(contender)];
      const { turn: _, ...described } = contender;
      return { ...described, ...summary(results[index], floor) };
    }),
  };
}

/** A round of each contender, in slices that take turns. */
async function oneRound({ contenders, inFlight, roundMs, serverPids }) {
  const count = inFlight === 1 ? SLICES_OF_A_LONE_ROUND : 1;
  const slices = contenders.map(() => []);
  for (let slice = 0; slice < count; slice += 1) {
    for (const [index, { turn }] of contenders.entries())
      slices[index].push(await runRound(turn, inFlight, roundMs / count, serverPids));
  }
  return slices.map(joined);
}

/** Keeps `inFlight` units of work going for about `forMs`. */
export async function runRound(turn, inFlight, forMs, serverPids) {
  const latencies = [];
  const serverBefore = cpuOfProcesses(serverPids);
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const end = start + forMs;
  const worker = async (number) => {
    let begun = performance.now();
    for (let index = 0; begun < end; index += 1) {
      await turn(number, index);
      const done = performance.now();
      latencies.push(done - begun);
      begun = done;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, number) => worker(number)));
  const elapsedMs = performance.now() - start;
  const { user, system } = process.cpuUsage(cpuBefore);
  const serverAfter = cpuOfProcesses(serverPids);
  const serverUs = serverBefore === null || serverAfter === null ? null : serverAfter - serverBefore;
  return { latencies, elapsedMs, clientUs: user + system, serverUs };
}

/** The figures of one round. */
export function joined(slices) {
  const latencies = slices.flatMap((slice) => slice.latencies);
  const sum = (field) => slices.reduce((total, slice) => total + slice[field], 0);
  const knowsServer = slices.every(({ serverUs }) => serverUs !== null);
  return {
    perSecond: (latencies.length * 1_000) / sum("elapsedMs"),
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    cpuUs: sum("clientUs") / latencies.length,
    serverCpuUs: knowsServer ? sum("serverUs") / latencies.length : null,
  };
}

/** The medians of a contender's rounds, and of their ratios to the floor's. */
export function summary(rounds, floorRounds) {
  const all = (field, from = rounds) => from.map((round) => round[field]);
  const ratio = (field) =>
    floorRounds === undefined ? null : medianRatio(all(field), all(field, floorRounds));
  const hasServerCpu = rounds.every(({ serverCpuUs }) => serverCpuUs !== null && serverCpuUs !== undefined);
  return {
    perSecond: median(all("perSecond")),
    p50Ms: median(all("p50Ms")),
    p99Ms: median(all("p99Ms")),
    cpuUs: median(all("cpuUs")),
    serverCpuUs: hasServerCpu ? median(all("serverCpuUs")) : null,
    ratio: { perSecond: ratio("perSecond"), p50Ms: ratio("p50Ms"), cpuUs: ratio("cpuUs") },
  };
}

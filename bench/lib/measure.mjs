// Calls of synchronous functions, counted in CPU time, so that other work on the machine does not count against them.
import { median } from "./statistics.mjs";

/** Calls per second of one core: the median of several rounds of about `roundMs`, after a warm-up. */
export function callsPerSecond(call, options) {
  const [only] = alternating([call], options);
  return only;
}

/** Until the engine has compiled what runs often, which takes long on a busy machine: so many calls, or so long. */
const WARM_UP = { calls: 200_000, ms: 1_500 };

/** The same for several functions whose rounds take turns. */
export function alternating(calls, { rounds = 5, roundMs = 300 } = {}) {
  for (const call of calls) {
    const start = performance.now();
    for (let done = 0; done < WARM_UP.calls && performance.now() - start < WARM_UP.ms; done += 1) call(done);
  }
  const results = calls.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, call] of calls.entries()) results[index].push(oneRound(call, roundMs));
  }
  return results.map(median);
}

function oneRound(call, forMs) {
  const start = performance.now();
  const cpu = process.cpuUsage();
  let done = 0;
  while (performance.now() - start < forMs) {
    for (let index = 0; index < 100; index += 1) call(done + index);
    done += 100;
  }
  const { user, system } = process.cpuUsage(cpu);
  return (done * 1_000_000) / (user + system);
}

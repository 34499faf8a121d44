// Medians of repeated, warmed-up runs.
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/**
 * Calls of a synchronous function per second of one core: the median of several rounds of about `roundMs`.
 * Counted in CPU time, so that other work on the machine does not count against it.
 */
export function callsPerSecond(call, { rounds = 5, roundMs = 300 } = {}) {
  const once = (forMs) => {
    const start = performance.now();
    const cpu = process.cpuUsage();
    let calls = 0;
    while (performance.now() - start < forMs) {
      for (let index = 0; index < 1_000; index += 1) call(calls + index);
      calls += 1_000;
    }
    const { user, system } = process.cpuUsage(cpu);
    return (calls * 1_000_000) / (user + system);
  };
  once(roundMs);
  return median(Array.from({ length: rounds }, () => once(roundMs)));
}

/** A figure without a floor or peers of its own. */
export function figure(name, ours, unit, bar, met) {
  return { case: name, ours, unit, floor: null, ratio: null, peers: {}, bar, met };
}

// Processor time and memory of processes, from /proc. Where there is none (not Linux) the tables leave the column empty.
import { readdirSync, readFileSync } from "node:fs";

const TICK_US = 10_000;

/** Microseconds of processor time that these processes and their descendants have used; null when unknown. */
export function cpuOfProcesses(pids) {
  if (pids.length === 0) return null;
  try {
    const children = childrenByParent();
    const wanted = [...pids];
    let ticks = 0;
    for (let pid = wanted.pop(); pid !== undefined; pid = wanted.pop()) {
      ticks += ticksOf(pid);
      wanted.push(...(children.get(pid) ?? []));
    }
    return ticks * TICK_US;
  } catch {
    return null;
  }
}

/** Milliseconds that the main thread of this process was on a processor; null when unknown. */
export function mainThreadMs() {
  try {
    const [nanoseconds] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
    return Number(nanoseconds) / 1e6;
  } catch {
    return null;
  }
}

/** Bytes of memory that only this process has, without pages of files that it maps; NaN when unknown. */
export function privateBytes(pid) {
  try {
    const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes) * 1_024;
  } catch {
    return Number.NaN;
  }
}

function fieldsOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function ticksOf(pid) {
  try {
    const fields = fieldsOf(pid);
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0; // It ended meanwhile.
  }
}

function childrenByParent() {
  const children = new Map();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const parent = Number(fieldsOf(name)[1]);
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // It ended meanwhile.
    }
  }
  return children;
}

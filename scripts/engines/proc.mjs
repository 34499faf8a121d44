// What the kernel says about processes, read from /proc (Linux). Only looks; never signals.
import { readdirSync, readFileSync } from "node:fs";

/**
 * @typedef {object} ProcessInfo
 * @property {number} pid
 * @property {string} state One letter: R, S, D, T (stopped), Z (zombie).
 * @property {number} parent
 * @property {string} startTicks Ticks after boot at which it started: with the pid, its identity.
 */

/**
 * @param {number} pid
 * @returns {ProcessInfo | undefined} undefined when there is no such process; a zombie counts as none.
 */
export function processInfo(pid) {
  let stat;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent] = fields;
  const startTicks = fields[19];
  if (state === undefined || parent === undefined || startTicks === undefined) return undefined;
  if (state === "Z" || state === "X") return undefined;
  return { pid, state, parent: Number(parent), startTicks };
}

/**
 * @param {{ pid: number, startTicks: string }} identity
 * @returns {boolean} whether that very process still runs, and not a later one with its pid.
 */
export function isAlive(identity) {
  return processInfo(identity.pid)?.startTicks === identity.startTicks;
}

/**
 * @param {number} pid
 * @returns {number[]} all living descendants, parents before children.
 */
export function descendants(pid) {
  /** @type {Map<number, number[]>} */
  const childrenOf = new Map();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const info = processInfo(Number(entry));
    if (info === undefined) continue;
    const siblings = childrenOf.get(info.parent) ?? [];
    siblings.push(info.pid);
    childrenOf.set(info.parent, siblings);
  }
  const found = [...(childrenOf.get(pid) ?? [])];
  for (const child of found) found.push(...(childrenOf.get(child) ?? []));
  return found;
}

/**
 * @param {number} pid
 * @returns {number} the memory of the process and its descendants in bytes. Shared pages are counted once
 * (proportionally) where the kernel lets us see that, because PostgreSQL's processes share most of theirs.
 */
export function memoryBytes(pid) {
  let total = 0;
  for (const each of [pid, ...descendants(pid)]) {
    total +=
      fieldKilobytes(`/proc/${each}/smaps_rollup`, "Pss") ??
      fieldKilobytes(`/proc/${each}/status`, "VmRSS") ??
      0;
  }
  return total * 1024;
}

/**
 * @param {string} file
 * @param {string} field
 */
function fieldKilobytes(file, field) {
  try {
    const match = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(file, "utf8"));
    return match === null ? undefined : Number(match[1]);
  } catch {
    return undefined;
  }
}

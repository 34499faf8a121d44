/**
 * Which boot of the machine this is, and what its monotonic clock reads. Within one boot all processes
 * share that clock, so a store's time can hang on it; after another boot it starts anew.
 *
 * Linux names the boot in /proc and macOS in sysctl. Elsewhere the boot is known by its moment (wall clock
 * minus monotonic clock): two readings within a minute count as one boot. There, setting the wall clock by
 * more than a minute while several processes have the same folder open makes them disagree.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Env } from "../env/index.ts";

export interface Boot {
  /** "id:<uuid>" or "moment:<ms>". */
  readonly id: string;
  /** How far this process's monotonic clock is ahead of the machine's: Linux time namespaces shift it. */
  readonly aheadMs: number;
}

const BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id";
const TIME_NAMESPACE_FILE = "/proc/self/timens_offsets";
const MOMENT_TOLERANCE_MS = 60_000;
const MOMENT = /^moment:(-?\d+)$/;

export function readBoot(env: Env): Boot {
  const id = linuxBootId() ?? macBootId();
  if (id !== null) return { id: `id:${id}`, aheadMs: namespaceShiftMs(readText(TIME_NAMESPACE_FILE) ?? "") };
  return { id: `moment:${Math.round(env.wallMs() - env.monotonicMs())}`, aheadMs: 0 };
}

export function isSameBoot(a: string, b: string): boolean {
  const [first, second] = [MOMENT.exec(a), MOMENT.exec(b)];
  if (first === null || second === null) return a === b;
  return Math.abs(Number(first[1]) - Number(second[1])) <= MOMENT_TOLERANCE_MS;
}

/** The line "monotonic <seconds> <nanoseconds>"; zero outside of a time namespace. */
export function namespaceShiftMs(text: string): number {
  const found = /^monotonic\s+(-?\d+)\s+(\d+)/m.exec(text);
  return found === null ? 0 : Number(found[1]) * 1_000 + Number(found[2]) / 1e6;
}

function linuxBootId(): string | null {
  const text = process.platform === "linux" ? readText(BOOT_ID_FILE)?.trim() : undefined;
  return text === undefined || text === "" ? null : text;
}

function macBootId(): string | null {
  if (process.platform !== "darwin") return null;
  try {
    return execFileSync("sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" }).trim() || null;
  } catch {
    return null;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

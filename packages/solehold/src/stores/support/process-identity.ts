/**
 * Which process wrote something, and whether that process is certainly gone. "Certainly": it ran before the machine's
 * last start, or its process id is free or belongs to a process that started at another time. A process of another pid
 * namespace (another container) cannot be judged from here, so it counts as alive.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { isSameBoot } from "./boot.ts";

export interface ProcessIdentity {
  /** Unique for whatever it was written for. */
  readonly nonce: string;
  readonly pid: number;
  /** When the process started, in ticks since boot; empty where the system does not say. */
  readonly startTicks: string;
  readonly bootId: string;
  readonly pidNamespace: string;
}

export function thisProcess(nonce: string, bootId: string): ProcessIdentity {
  const { pid } = process;
  return { nonce, pid, startTicks: statOf(pid)?.startTicks ?? "", bootId, pidNamespace: pidNamespace() };
}

export function isGone(owner: ProcessIdentity, bootId: string): boolean {
  if (!isSameBoot(owner.bootId, bootId)) return true;
  if (owner.pidNamespace !== pidNamespace()) return false;
  if (!isRunning(owner.pid)) return true;
  const stat = statOf(owner.pid);
  if (stat === null || owner.startTicks === "") return false;
  return stat.startTicks !== owner.startTicks || stat.state === "Z" || stat.state === "X";
}

/** Null when the text is something else. */
export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const owner = JSON.parse(text) as ProcessIdentity;
    const texts = [owner.nonce, owner.startTicks, owner.bootId, owner.pidNamespace];
    const sound = texts.every((value) => typeof value === "string") && Number.isSafeInteger(owner.pid);
    return sound && /^[\w-]+$/.test(owner.nonce) ? owner : null;
  } catch {
    return null;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** The command in parentheses may contain anything, so fields count from its end. */
function statOf(pid: number): { readonly state: string; readonly startTicks: string } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", startTicks: fields[19] ?? "" };
  } catch {
    return null;
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/**
 * Which process wrote something, and whether that process is certainly gone. "Certainly": it ran before the machine's
 * last start, or its process id is free or belongs to a process that started at another time. What this process cannot
 * see (another machine, another pid namespace) it cannot judge, so that counts as alive.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { isSameBoot } from "./boot.ts";

/** Where a process id means something. Processes compare only the members that both of them wrote down. */
export interface PidScope {
  readonly bootId: string;
  /** The host name, where several machines may reach the folder. Without it another boot means: an earlier boot. */
  readonly host?: string;
  /** The container, where several may reach the folder. Without it a container that starts again is still the same one. */
  readonly pidNamespace?: string;
}

export interface ProcessIdentity extends PidScope {
  /** Unique for whatever it was written for. */
  readonly nonce: string;
  readonly pid: number;
  /** When the process started, in ticks since boot; empty where the system does not say. */
  readonly startTicks: string;
}

export function thisProcess(nonce: string, scope: PidScope): ProcessIdentity {
  return { nonce, pid: process.pid, startTicks: statOf(process.pid)?.startTicks ?? "", ...scope };
}

/** `here` must have the members that the owner's identity has. */
export function isGone(owner: ProcessIdentity, here: PidScope): boolean {
  if (owner.host !== here.host) return false;
  if (!isSameBoot(owner.bootId, here.bootId)) return true;
  if (owner.pidNamespace !== here.pidNamespace) return false;
  if (!isRunning(owner.pid)) return true;
  const stat = statOf(owner.pid);
  if (stat === null || owner.startTicks === "") return false;
  return stat.startTicks !== owner.startTicks || isDead(stat);
}

/** Null when the text is something else. */
export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const owner = JSON.parse(text) as ProcessIdentity;
    const texts = [owner.nonce, owner.startTicks, owner.bootId, owner.host ?? "", owner.pidNamespace ?? ""];
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

export interface ProcessStat {
  readonly state: string;
  readonly groupId: number;
  readonly startTicks: string;
}

/** From Linux' /proc; null when there is no such process, or no /proc. */
export function statOf(pid: number): ProcessStat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command in parentheses may contain anything, so fields count from its end.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", groupId: Number(fields[2]), startTicks: fields[19] ?? "" };
  } catch {
    return null;
  }
}

/** It ended; its parent has not collected it yet. */
export function isDead({ state }: ProcessStat): boolean {
  return state === "Z" || state === "X";
}

/** Empty where the system has none. */
export function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

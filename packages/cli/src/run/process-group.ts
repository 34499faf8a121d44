/** A process group: the command and all that it started, unless they left it on purpose. */
import type { Env } from "solehold";
import { delay } from "../delay.ts";

const LOOK_EVERY_MS = 10;

/** Sends to every member. "forbidden" when all of them run under another user. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): "sent" | "gone" | "forbidden" {
  try {
    process.kill(-groupId, signal);
    return "sent";
  } catch (error) {
    return isGone(error) ? "gone" : "forbidden";
  }
}

/** Members that have died but were not yet collected by their parent still count. */
export function groupExists(groupId: number): boolean {
  try {
    process.kill(-groupId, 0);
    return true;
  } catch (error) {
    // EPERM: somebody is there, but under another user.
    return !isGone(error);
  }
}

/** "alive" when somebody is left after `withinMs`. */
export async function groupLeft(groupId: number, env: Env, withinMs: number): Promise<"none" | "alive"> {
  const endMs = env.monotonicMs() + withinMs;
  while (groupExists(groupId)) {
    if (env.monotonicMs() >= endMs) return "alive";
    await delay(env, LOOK_EVERY_MS);
  }
  return "none";
}

function isGone(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ESRCH";
}

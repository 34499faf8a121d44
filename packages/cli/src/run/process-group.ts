/** A process group: the command and all that it started, unless they left it on purpose. */
import { readdirSync } from "node:fs";
import { delay, type Env, isDead, statOf } from "solehold/internal";

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

/** Whether any member can still run. */
export function groupExists(groupId: number): boolean {
  try {
    process.kill(-groupId, 0);
  } catch (error) {
    // EPERM: somebody is there, but under another user.
    if (isGone(error)) return false;
  }
  return process.platform !== "linux" || hasLivingMember(groupId);
}

/**
 * The dead still count as members until their parent collects them, and in a container the process that
 * inherits them may never do so. Here they are told apart by their state.
 */
function hasLivingMember(groupId: number): boolean {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.some((id) => {
    const stat = statOf(Number(id));
    return stat !== null && stat.groupId === groupId && !isDead(stat);
  });
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

/** A process group: the command and all processes that it started, unless they left it on purpose. */
import { readdirSync, readFileSync } from "node:fs";
import { delay, type Env } from "solehold/internal";

const CHECK_EVERY_MS = 10;

/** Sends to every member. "denied" when all of them run under another user. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): "sent" | "gone" | "denied" {
  try {
    process.kill(-groupId, signal);
    return "sent";
  } catch (error) {
    return isGone(error) ? "gone" : "denied";
  }
}

/** Whether any member can still run. */
export function groupExists(groupId: number): boolean {
  try {
    process.kill(-groupId, 0);
  } catch (error) {
    // EPERM: there is a process, but under another user.
    if (isGone(error)) return false;
  }
  return process.platform !== "linux" || hasLivingMember(groupId);
}

/**
 * Dead processes count as members until their parent collects them, and in a container the process that
 * inherits them may never do so. Their state in /proc tells them from living ones.
 */
function hasLivingMember(groupId: number): boolean {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.some((id) => {
    // pid (name) state parent group ...; the name may contain anything, so what follows its last bracket counts.
    const status = readStatus(id);
    const [state = "X", , group] = status.slice(status.lastIndexOf(")") + 2).split(" ");
    return group === String(groupId) && !"ZX".includes(state);
  });
}

/** Empty when the process has gone since. */
function readStatus(processId: string): string {
  try {
    return readFileSync(`/proc/${processId}/stat`, "utf8");
  } catch {
    return "";
  }
}

/** "alive" when a process of the group is left after `withinMs`. */
export async function awaitGroupEnd(groupId: number, env: Env, withinMs: number): Promise<"none" | "alive"> {
  const endMs = env.monotonicMs() + withinMs;
  while (groupExists(groupId)) {
    if (env.monotonicMs() >= endMs) return "alive";
    await delay(env, CHECK_EVERY_MS);
  }
  return "none";
}

function isGone(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ESRCH";
}

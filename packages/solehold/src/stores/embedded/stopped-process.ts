/** Whether a process is stopped, as by SIGSTOP or a debugger, with all of its threads. Only Linux can tell. */
import { readdirSync, readFileSync } from "node:fs";

const STOPPED = new Set(["T", "t"]);

export function isStopped(pid: string): boolean {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.length > 0 && threads.every((thread) => STOPPED.has(stateOf(pid, thread)));
  } catch {
    return false;
  }
}

/** The letter after the name, which is in parentheses and may contain any. */
function stateOf(pid: string, thread: string): string {
  const line = readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1");
  return line.charAt(line.lastIndexOf(")") + 2);
}

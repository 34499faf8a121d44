// The longest turn of the event loop while something runs: processor time of the main thread where the kernel tells it,
// so that other work on the machine does not count against it; otherwise wall time.
import { mainThreadMs } from "./cpu.mjs";

export async function longestTurnMs(run) {
  const now = mainThreadMs() === null ? () => performance.now() : mainThreadMs;
  let longest = 0;
  let last = now();
  let running = true;
  const look = () => {
    const current = now();
    longest = Math.max(longest, current - last);
    last = current;
    if (running) setImmediate(look);
  };
  setImmediate(look);
  try {
    await run();
  } finally {
    running = false;
  }
  look();
  return longest;
}

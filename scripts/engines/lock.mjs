// One `up` or `down` at a time per folder. The lock is a socket name that only one process can hold and that the
// kernel frees when its holder ends, however it ends: there is no lock file to go stale.
import { createHash } from "node:crypto";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const WAIT_MS = 15 * 60_000;

/**
 * @template T
 * @param {string} folder
 * @param {() => Promise<T>} work
 * @param {(message: string) => void} say
 * @returns {Promise<T>}
 */
export async function withLock(folder, work, say) {
  // A leading NUL puts the name into Linux's abstract namespace, where nothing touches the file system.
  const name = `\0solehold-engines-${createHash("sha256").update(folder).digest("hex").slice(0, 16)}`;
  const deadline = performance.now() + WAIT_MS;
  let release = await tryHold(name);
  if (release === undefined) say(`waiting for another engines command on ${folder}`);
  while (release === undefined) {
    if (performance.now() > deadline) throw new Error(`another engines command holds ${folder} for too long`);
    await sleep(100);
    release = await tryHold(name);
  }
  try {
    return await work();
  } finally {
    release();
  }
}

/**
 * @param {string} name
 * @returns {Promise<(() => void) | undefined>} how to release it; undefined when another process holds it.
 */
function tryHold(name) {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error) => {
      if ("code" in error && error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen({ path: name }, () => resolve(() => server.close()));
  });
}

// Asks a Ceph daemon about itself over its admin socket: the state of this very process, where the `ceph` program
// would show what the monitor last knew (and takes a fifth of a second to start).
import { connect } from "node:net";

/**
 * @param {string} path
 * @param {string} command
 * @returns {Promise<Record<string, unknown>>}
 */
export function cephAdminSocket(path, command) {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    /** @type {Buffer[]} */
    const chunks = [];
    socket.setTimeout(2000, () => socket.destroy(new Error(`no answer on ${path}`)));
    socket.once("error", reject);
    socket.once("connect", () => socket.write(`${JSON.stringify({ prefix: command })}\0`));
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.once("close", () => {
      // Four bytes of length, then JSON; the daemon closes after its answer.
      const reply = Buffer.concat(chunks).subarray(4).toString("utf8");
      try {
        resolve(JSON.parse(reply));
      } catch {
        reject(new Error(`${path} answered ${JSON.stringify(reply)}`));
      }
    });
  });
}

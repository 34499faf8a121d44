/** Where the socket of a name in a folder is. */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** On Windows they are pipes with names of their own, so the folder holds files in their place. */
export const SOCKETS_ARE_ELSEWHERE = process.platform === "win32";

/** The lowest of the systems' limits for a socket's path. Folders have no such limit. */
const LONGEST_BYTES = 103;

/** `use` must be done with the path when it returns. The end of the name, after the last "-", is like no other. */
export function withSocketPath<T>(folder: string, name: string, use: (path: string) => T): T {
  if (SOCKETS_ARE_ELSEWHERE) return use(`\\\\.\\pipe\\solehold-${name.split("-").at(-1)}`);
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= LONGEST_BYTES) return use(path);
  if (process.platform !== "linux")
    throw new Error(`its path may have ${LONGEST_BYTES - name.length - 1} bytes at most`);
  const descriptor = openSync(folder, "r");
  try {
    return use(`/proc/self/fd/${descriptor}/${name}`);
  } finally {
    closeSync(descriptor);
  }
}

/** A socket's path has a limit that folders do not have. */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** The lowest of the limits of the systems we know. */
const LONGEST_BYTES = 103;

/** `use` must be done with the path when it returns. */
export function withSocketPath<T>(folder: string, name: string, use: (path: string) => T): T {
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= LONGEST_BYTES) return use(path);
  if (process.platform !== "linux")
    throw new Error(`a path of more than ${LONGEST_BYTES - name.length} bytes is too long for a socket`);
  const descriptor = openSync(folder, "r");
  try {
    return use(`/proc/self/fd/${descriptor}/${name}`);
  } finally {
    closeSync(descriptor);
  }
}

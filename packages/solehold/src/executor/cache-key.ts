import { DEFAULT_TENANT, type LeaseKey } from "../core/index.ts";

/**
 * The id of a key in this process's own maps. A name of the default tenant stands for itself: a text that is put together
 * for each command would have to be copied and hashed each time, too. No name contains a line break.
 */
export function cacheKey({ tenant, name }: LeaseKey): string {
  return tenant === DEFAULT_TENANT ? name : `\n${tenant}/${name}`;
}

import { DEFAULT_TENANT, type LeaseKey } from "../core/index.ts";

/**
 * A key as the id of this process's own maps. A name of the default tenant stands for itself: a text that is put together
 * for each command would have to be copied and hashed each time, too. No name contains a line break.
 */
export function mapId({ tenant, name }: LeaseKey): string {
  return tenant === DEFAULT_TENANT ? name : `\n${tenant}/${name}`;
}

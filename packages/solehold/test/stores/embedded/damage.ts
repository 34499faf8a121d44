/** Damage behind the store's back, through a second opening of its database. */
import { keyId, type LeaseKey } from "../../../src/core/index.ts";
import { loadLmdb, openDatabases } from "../../../src/stores/embedded/database.ts";

/** Calls back with every place of `text`: a page that was rewritten leaves its old copies behind. */
export function everywhere(bytes: Buffer, text: string, damage: (at: number) => void): void {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at);
  if (places.length === 0) throw new Error(`'${text}' is not in the file`);
  for (const at of places) damage(at);
}

/** Replaces the stored text by `damage(text)`, keeping its version, as bit rot would. */
export async function corruptValue(
  folder: string,
  key: LeaseKey,
  damage: (text: string) => string = (text) => `${text.slice(0, -1)}?`,
): Promise<void> {
  const databases = openDatabases(await loadLmdb(), folder);
  const bytes = Buffer.from(keyId(key));
  const entry = databases.records.getEntry(bytes);
  if (entry === undefined) throw new Error(`there is no record of ${keyId(key)}`);
  const version = entry.version ?? 0;
  await databases.records.put(bytes, damage(entry.value), version, version);
  await databases.root.close();
}

/** The id of a grant, spelled in one way everywhere: `tenant/name@fence`, in grants, denials, views, audit and stores. */
import { keyId, type LeaseKey } from "./key.ts";
import { type LeaseRecord, recordFence } from "./record.ts";

/** Without a fence where no grant is known: then it is the key alone. */
export function leaseId(key: LeaseKey, fence: bigint | null): string {
  return fence === null ? keyId(key) : `${keyId(key)}@${fence}`;
}

export function leaseIdOf(record: LeaseRecord): string {
  return leaseId(record.key, recordFence(record));
}

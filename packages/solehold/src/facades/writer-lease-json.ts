/** The lease object of document 004 as text: six fields, and integers of 64 bits that stay exact. */
import { DEFAULT_TENANT, WRITER_POLICY } from "../core/index.ts";
import { decodeWire } from "../stores/object/wire.ts";
import { type WriterLease, WriterLeaseError, writerLeaseOf } from "../writer/index.ts";

/** The term of a lease object that names none. */
export const DEFAULT_REPLICATION_TERM: bigint = WRITER_POLICY.baseTerm;

/** JSON.stringify cannot write a bigint as a number, and a double would change terms above 2^53. */
export function toJson(lease: WriterLease): string {
  const { databaseKey, holderId, term, generation, acquiredAtMs, expiresAtMs } = lease;
  return (
    `{"database_key":${JSON.stringify(databaseKey)},"holder_id":${JSON.stringify(holderId)},"term":${term},` +
    `"generation":${generation},"acquired_at_ms":${acquiredAtMs},"expires_at_ms":${expiresAtMs}}`
  );
}

/** Throws InvalidFormat, naming the field. A missing term is DEFAULT_REPLICATION_TERM; further fields are ignored. */
export function fromJson(text: string): WriterLease {
  const decoded = decodeWire(text, { tenant: DEFAULT_TENANT, name: databaseKeyIn(text) });
  if (decoded.ok) return writerLeaseOf(decoded.record);
  throw new WriterLeaseError({ kind: "InvalidFormat" }, `the lease object cannot be read: ${decoded.detail}`);
}

/** Empty when there is none: reading the object then names the field that is missing. */
function databaseKeyIn(text: string): string {
  try {
    const { database_key: databaseKey } = JSON.parse(text) as { readonly database_key?: unknown };
    return typeof databaseKey === "string" ? databaseKey : "";
  } catch {
    return "";
  }
}

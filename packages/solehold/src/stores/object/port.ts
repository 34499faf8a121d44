/**
 * What a server of objects must be able to do: read with an ETag, write on condition of one. A driver for
 * one protocol implements this and knows nothing of leases. It never retries a write: a retried write that
 * had been applied would look lost to its own writer.
 */

export interface ObjectBody {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** Every reply carries the server's time, from its Date header; null when it sent none. */
export interface Dated {
  readonly dateMs: number | null;
}

export type PutOutcome =
  /** The server confirmed it. `etag` is null when the server did not name the new one. */
  | ({ readonly kind: "applied"; readonly etag: string | null } & Dated)
  /** The server refused because of the condition: it was not done and never will be. */
  | ({ readonly kind: "precondition-failed" } & Dated)
  /** No answer, or one that leaves it open. */
  | ({ readonly kind: "unknown"; readonly cause: Error } & Dated);

export interface ObjectPage extends Dated {
  /** In order of the server, with its prefix. */
  readonly names: readonly string[];
  /** Pass to go on; null at the end. */
  readonly next: string | null;
}

export interface PutOptions {
  /** Metadata of the object, names in lower case; values of printable ASCII. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly contentType?: string;
}

export interface ConditionalObjects {
  /** For messages: "S3 bucket 'x' at http://host". Never with a secret. */
  readonly place: string;
  /** Rejects with a StoreError when it could not be read. */
  get(name: string): Promise<{ readonly object: ObjectBody | null } & Dated>;
  /** Rejects with a StoreError only when it was certainly not done, as with wrong credentials. */
  putIfAbsent(name: string, bytes: Uint8Array, options?: PutOptions): Promise<PutOutcome>;
  putIfMatch(name: string, etag: string, bytes: Uint8Array, options?: PutOptions): Promise<PutOutcome>;
  /** Whether servers of this kind honour the condition differs: the probe finds out. */
  deleteIfMatch(name: string, etag: string): Promise<PutOutcome>;
  /** Without a condition: for objects whose name nobody else uses. */
  remove(name: string): Promise<void>;
  /** Rejects with a StoreError "config" where the protocol has no listing. */
  list(prefix: string, after: string | null): Promise<ObjectPage>;
  close(): void;
}

/** How an ETag is sent in a condition. Servers differ: one wants it as it came, another without quotes. */
export type EtagQuoting = "quoted" | "bare";

/** Drivers whose quoting can be switched by the probe. */
export interface QuotableObjects extends ConditionalObjects {
  quoting: EtagQuoting;
}

/** The ETag without its quotes; null for a missing or weak one, which no condition may use. */
export function plainEtag(header: string | undefined): string | null {
  if (header === undefined || header === "" || header.startsWith("W/")) return null;
  return header.replace(/^"|"$/g, "");
}

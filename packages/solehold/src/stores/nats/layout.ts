/**
 * Where things are in the bucket. Keys of the bucket `solehold`, as `nats kv ls solehold` shows them:
 *
 *   identity                           JSON: whose data this is, see support/data-identity.ts
 *   {dataId}.{tenant}.{part}.{part}    one record: the id of the data, then the name, split at its slashes
 *
 * A key of NATS KV has letters, digits and - _ / = and dots between its tokens. Whatever else a name holds is
 * written as the bytes of its UTF-8, =2E for a dot; a part that is empty is a lone "=". The id of the data keeps
 * a client that has not noticed yet that the bucket was purged or replaced away from the new records.
 */
import type { LeaseKey } from "../../core/index.ts";

const PLAIN = /^[A-Za-z0-9_-]+$/;
const PLAIN_PARTS = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+)*$/;
const ESCAPED = /(?:=[0-9A-F]{2})+/g;
const SPECIAL = /[^A-Za-z0-9_-]+/gu;

export class NatsLayout {
  readonly stream: string;
  /** What every subject of the bucket begins with. */
  readonly base: string;
  readonly identitySubject: string;

  constructor(bucket: string) {
    this.stream = `KV_${bucket}`;
    this.base = `$KV.${bucket}.`;
    this.identitySubject = `${this.base}identity`;
  }

  recordSubject(dataId: string, { tenant, name }: LeaseKey): string {
    return `${this.base}${dataId}.${encodePart(tenant)}.${encodeName(name)}`;
  }

  /** Matches every record of the data. */
  allRecords(dataId: string): string {
    return `${this.base}${dataId}.>`;
  }

  /** Matches every name with this prefix, and others: a wildcard stands for whole parts only. */
  recordsOf(dataId: string, tenant: string, prefix: string): string {
    const slash = prefix.lastIndexOf("/");
    const parts = slash < 0 ? "" : `${encodeName(prefix.slice(0, slash))}.`;
    return `${this.base}${dataId}.${encodePart(tenant)}.${parts}>`;
  }

  /** The lease key of a record's subject; null for any other subject. */
  keyOf(dataId: string, subject: string): LeaseKey | null {
    const start = `${this.base}${dataId}.`;
    if (!subject.startsWith(start)) return null;
    const [tenant = "", ...parts] = subject.slice(start.length).split(".").map(decodePart);
    return parts.length === 0 ? null : { tenant, name: parts.join("/") };
  }
}

function encodeName(name: string): string {
  if (PLAIN_PARTS.test(name)) return name.replaceAll("/", ".");
  return name.split("/").map(encodePart).join(".");
}

function encodePart(part: string): string {
  if (PLAIN.test(part)) return part;
  return part === "" ? "=" : part.replace(SPECIAL, escaped);
}

function escaped(text: string): string {
  return Buffer.from(text)
    .toString("hex")
    .toUpperCase()
    .replace(/../g, (byte) => `=${byte}`);
}

function decodePart(part: string): string {
  if (part === "=") return "";
  return part.replace(ESCAPED, (bytes) => Buffer.from(bytes.replaceAll("=", ""), "hex").toString());
}

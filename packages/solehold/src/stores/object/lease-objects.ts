/** Leases on one side, objects on the other: names, bytes and ETags. */
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type StoredRecord } from "../../store/index.ts";
import type { ObjectNames } from "./names.ts";
import type { ConditionalObjects, Dated, ObjectPage, PutOutcome } from "./port.ts";
import { decodeWire } from "./wire.ts";

const JSON_TYPE = { contentType: "application/json" };

export interface LeaseObject extends Dated {
  readonly stored: StoredRecord;
  /** The version that was replaced; undefined when the object does not say. */
  readonly previous: string | null | undefined;
}

export class LeaseObjects {
  readonly names: ObjectNames;
  readonly #objects: ConditionalObjects;

  constructor(objects: ConditionalObjects, names: ObjectNames) {
    this.#objects = objects;
    this.names = names;
  }

  async read(key: LeaseKey): Promise<LeaseObject> {
    const { object, dateMs } = await this.#objects.get(this.names.nameOf(key));
    if (object === null) return { stored: ABSENT, previous: undefined, dateMs };
    const decoded = decodeWire(object.bytes.toString("utf8"), key);
    const version = object.etag;
    if (!decoded.ok)
      return { stored: { kind: "corrupt", version, detail: decoded.detail }, previous: undefined, dateMs };
    const { record, origin } = decoded;
    return { stored: { kind: "found", record, version }, previous: origin?.previous, dateMs };
  }

  create(key: LeaseKey, text: string): Promise<PutOutcome> {
    return this.#objects.putIfAbsent(this.names.nameOf(key), Buffer.from(text), JSON_TYPE);
  }

  replace(key: LeaseKey, version: string, text: string): Promise<PutOutcome> {
    return this.#objects.putIfMatch(this.names.nameOf(key), version, Buffer.from(text), JSON_TYPE);
  }

  delete(key: LeaseKey, version: string): Promise<PutOutcome> {
    return this.#objects.deleteIfMatch(this.names.nameOf(key), version);
  }

  list(tenant: string, namePrefix: string, after: string | null): Promise<ObjectPage> {
    return this.#objects.list(this.names.listPrefix(tenant, namePrefix), after);
  }

  close(): void {
    this.#objects.close();
  }
}

export function versionIn(stored: StoredRecord): string | null {
  return stored.kind === "absent" ? null : stored.version;
}

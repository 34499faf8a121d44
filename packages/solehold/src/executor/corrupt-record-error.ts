/** A record that cannot be read. It is never overwritten silently, so it bars its key until somebody repairs it. */
import { keyId, type LeaseKey } from "../core/index.ts";

export class CorruptRecordError extends Error {
  override readonly name = "CorruptRecordError";
  readonly code = "RECORD_CORRUPT";
  readonly key: LeaseKey;
  /** The store's version of what cannot be read: a repair replaces exactly this. */
  readonly version: string;
  readonly detail: string;

  constructor(key: LeaseKey, version: string, detail: string) {
    super(
      `the record of ${keyId(key)} (version ${version}) is damaged: ${detail}. Nothing is granted until an operator calls repair(key, generation), with a generation no lower than any granted before`,
    );
    this.key = key;
    this.version = version;
    this.detail = detail;
  }
}

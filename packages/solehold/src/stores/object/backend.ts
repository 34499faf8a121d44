/**
 * Leases as objects: one object a key, written on condition of its ETag, which is the version. The server's Date header
 * is the clock, to the second; several servers behind one address have several clocks, hence `clockSkewMs`.
 *
 * A write that was not confirmed is settled here where what is there now makes it certain:
 * - it is our own text, which has a nonce: it was applied. A refused condition is no proof against that, because a proxy
 *   that repeats requests has the first copy applied and the second one refused;
 * - the server refused the condition, or what is there says that it replaced the very version that we wanted to replace:
 *   ours was not applied and never will be.
 * Anything else is unknown.
 */
import type { LeaseKey } from "../../core/index.ts";
import {
  type ConditionalPut,
  type ConditionalReply,
  type GetReply,
  type ListRange,
  type ListReply,
  type RecordCodec,
  type SimpleBackend,
  StoreError,
} from "../../store/index.ts";
import type { ObjectNames } from "./names.ts";
import type { ConditionalObjects, PutOutcome } from "./objects.ts";
import { decodeWire, encodeWire } from "./wire.ts";

/** Objects of a listing that are read at a time. */
const LIST_WIDTH = 16;
const JSON_TYPE = "application/json";

export const OBJECT_CODEC: RecordCodec = {
  encode: (record, expected) => encodeWire(record, { previous: expected, epoch: 1 }),
  decode: decodeWire,
};

export interface ObjectBackendParts {
  readonly objects: ConditionalObjects;
  readonly names: ObjectNames;
  readonly conditionalDelete: boolean;
}

export class ObjectBackend implements SimpleBackend {
  /** Absent where the server does not keep the condition of a delete. */
  readonly deleteIf?: NonNullable<SimpleBackend["deleteIf"]>;
  /** Absent where the protocol has no listing. */
  readonly list?: NonNullable<SimpleBackend["list"]>;
  readonly listResumes = "at a cursor";
  readonly #objects: ConditionalObjects;
  readonly #names: ObjectNames;

  constructor({ objects, names, conditionalDelete }: ObjectBackendParts) {
    this.#objects = objects;
    this.#names = names;
    if (objects.canList) this.list = (range) => this.#list(range);
    if (conditionalDelete) this.deleteIf = (key, expected) => this.#deleteIf(key, expected);
  }

  async get(key: LeaseKey): Promise<GetReply> {
    const { object, dateMs } = await this.#objects.get(this.#names.nameOf(key));
    const value = object && { text: object.bytes.toString("utf8"), version: object.etag };
    return { value, timeMs: dateMs };
  }

  async putIf(put: ConditionalPut): Promise<ConditionalReply> {
    const { key, expected, text } = put;
    const name = this.#names.nameOf(key);
    const outcome =
      expected === null
        ? await this.#objects.putIfAbsent(name, Buffer.from(text), JSON_TYPE)
        : await this.#objects.putIfMatch(name, expected, Buffer.from(text), JSON_TYPE);
    if (outcome.kind !== "applied" || outcome.etag === null) return await this.#settle(put, outcome);
    return { kind: "done", version: outcome.etag, ...timeOf(outcome) };
  }

  async close(): Promise<void> {
    this.#objects.close();
  }

  async #deleteIf(key: LeaseKey, expected: string): Promise<ConditionalReply> {
    const outcome = await this.#objects.deleteIfMatch(this.#names.nameOf(key), expected);
    if (outcome.kind === "applied") return { kind: "done", ...timeOf(outcome) };
    if (outcome.kind === "precondition-failed") return { kind: "conflict", ...timeOf(outcome) };
    // Nothing tells whose delete it was.
    if (outcome.dateMs === null) throw outcome.cause;
    return { kind: "unknown", cause: outcome.cause, ...timeOf(outcome) };
  }

  async #settle({ key, expected, text }: ConditionalPut, outcome: PutOutcome): Promise<ConditionalReply> {
    // Without a reply another question would hang, too.
    if (outcome.kind === "unknown" && outcome.dateMs === null) throw outcome.cause;
    const cause = outcome.kind === "unknown" ? outcome.cause : this.#unread();
    const unknown: ConditionalReply = { kind: "unknown", cause, ...timeOf(outcome) };
    const found = await this.get(key).catch(() => null);
    if (found === null) return unknown;
    const { value, ...reply } = found;
    if (value?.text === text) return { ...reply, kind: "done", version: value.version };
    // After a delete a key can be created again, so two creates prove nothing about each other.
    const isOneStep = expected !== null || this.deleteIf === undefined;
    const isTheirs = value !== null && isOneStep && previousOf(value.text, key) === expected;
    if (outcome.kind === "precondition-failed" || (outcome.kind === "unknown" && isTheirs))
      return { ...reply, kind: "conflict", current: value };
    return unknown;
  }

  /** One page of the server's: it may have fewer leases than were asked for, or none, before the end. */
  async #list({ tenant, prefix, after, limit }: ListRange): Promise<ListReply> {
    // A cursor, and a server's listing, is of one tenant; nobody watches by polling here.
    const of = tenant ?? "";
    const page = await this.#objects.list(this.#names.listPrefix(of, prefix), after?.name ?? null, limit);
    const keys = page.names
      .map((object) => this.#names.keyNameOf(of, object))
      .flatMap((name) => (name?.startsWith(prefix) ? [{ tenant: of, name }] : []));
    const items: ListReply["items"][number][] = [];
    for (let start = 0; start < keys.length; start += LIST_WIDTH) {
      const part = keys.slice(start, start + LIST_WIDTH);
      const values = await Promise.all(part.map(async (key) => ({ key, ...(await this.get(key)) })));
      items.push(...values.flatMap(({ key, value }) => (value === null ? [] : [{ key, ...value }])));
    }
    return { items, next: page.next === null ? null : { tenant: of, name: page.next }, timeMs: page.dateMs };
  }

  #unread(): StoreError {
    const message = `${this.#objects.place}: what became of a write could not be read`;
    return new StoreError("unreachable", message, { outcome: "unknown" });
  }
}

function timeOf({ dateMs }: PutOutcome): { readonly timeMs?: number } {
  return dateMs === null ? {} : { timeMs: dateMs };
}

/** The version that the write of this text replaced; undefined when it does not say. */
function previousOf(text: string, key: LeaseKey): string | null | undefined {
  const decoded = decodeWire(text, key);
  return decoded.ok ? decoded.origin?.previous : undefined;
}

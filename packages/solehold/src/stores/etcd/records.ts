/**
 * Reading, writing and listing records.
 *
 * Reads and writes are one transaction, whatever their number. A write is a transaction of its own inside it: if the key
 * still has the expected version it is done, else the current record is read, in the same round trip. So each write has
 * its own condition and its own outcome, and together they cost the cluster one agreement.
 */
import { encodeRecord, type LeaseKey } from "../../core/index.ts";
import type {
  ApplyReply,
  ConditionalWrite,
  ListPage,
  ListQuery,
  ReadReply,
  StoredRecord,
  WriteResult,
} from "../../store/index.ts";
import { listRecords } from "../../store/paging.ts";
import type { Cluster } from "./cluster.ts";
import { comparesOf, type EtcdLayout, keyAfter, storedFrom, versionOf } from "./layout.ts";
import type { RequestOp, ResponseOp } from "./messages.ts";

export type Access = Readonly<{ cluster: Cluster; layout: EtcdLayout }>;

/**
 * Linearizable: the member asks its leader first how far it must have come. All keys are read at one revision, which is
 * part of the reply: core grants above it (`generation = max(previous, revision) + 1`). Every grant is a write and raises
 * the revision, so no generation is above the revision at which its record was written; and a key whose record was
 * deleted, by whomever, starts above all generations that it had.
 */
export async function readRecords(access: Access, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const success = keys.map((key) => ({ range: { key: access.layout.bytesOf(key) } }));
  const request = { compare: [], success, failure: [] };
  return await access.cluster.call("KV/Txn", request, "not-applied", ({ responses }, revision) => {
    const records = keys.map((key, index) => currentIn(key, responses[index]));
    return { storeTimeMs: null, records, revision };
  });
}

/**
 * The condition of the outer transaction is empty, so its failure branch is never taken. It is there because etcd checks
 * its limit of space and the rights of the user only on what stands at this level: without it writes would pass that
 * etcd has to refuse. All writes have the revision of the whole.
 */
export async function applyWrites(access: Access, writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
  const encoded = writes.map(({ key, expected, next }): EncodedWrite => {
    const value = next === null ? null : Buffer.from(encodeRecord(next));
    return { key, expected, bytes: access.layout.bytesOf(key), value };
  });
  const failure = encoded.map((write) => unconditional({ ...write, value: write.value && NOTHING }));
  const request = { compare: [], success: encoded.map(conditional), failure };
  return await access.cluster.call("KV/Txn", request, "unknown", ({ responses }, revision) => {
    const results = encoded.map((write, index) => resultOf(write, responses[index], revision));
    return { storeTimeMs: null, results };
  });
}

const NOTHING = Buffer.alloc(0);

/** A null `value` deletes. */
type EncodedWrite = Pick<ConditionalWrite, "key" | "expected"> &
  Readonly<{ bytes: Buffer; value: Buffer | null }>;

function conditional(write: EncodedWrite): RequestOp {
  const { bytes: key, expected, value } = write;
  // To delete what must not exist changes nothing: the condition is all.
  const success = expected === null && value === null ? [] : [unconditional(write)];
  return { txn: { compare: comparesOf(key, expected), success, failure: [{ range: { key } }] } };
}

function unconditional({ bytes: key, value }: EncodedWrite): RequestOp {
  return value === null ? { delete: { key } } : { put: { key, value } };
}

function resultOf(write: EncodedWrite, response: ResponseOp | undefined, revision: bigint): WriteResult {
  const answer = response?.txn ?? missing("a write");
  if (!answer.succeeded) return { kind: "conflict", current: currentIn(write.key, answer.responses[0]) };
  return { kind: "applied", version: write.value && versionOf(String(revision), write.value) };
}

function currentIn(key: LeaseKey, response: ResponseOp | undefined): StoredRecord {
  const { kvs } = response?.range ?? missing("a read");
  return storedFrom(key, kvs[0]);
}

function missing(what: string): never {
  throw new Error(`not a message of etcd: the answer to ${what} is missing`);
}

/** In order of name. The cursor is the server's key: somebody else's bytes in the range may be no key of ours. */
export async function listPage({ cluster, layout }: Access, query: ListQuery): Promise<ListPage> {
  let range = layout.rangeAfter(query);
  const page = await listRecords(query, async ({ limit }) => {
    const { kvs, more } = await cluster.call(
      "KV/Range",
      { ...range, limit },
      "not-applied",
      (reply) => reply,
    );
    const items = kvs.flatMap((kv) => {
      const key = layout.keyOf(kv.key);
      return key === null ? [] : [{ key, stored: storedFrom(key, kv) }];
    });
    const last = kvs.at(-1);
    if (last !== undefined) range = { ...range, key: keyAfter(last.key) };
    const isEnd = !more || last === undefined;
    return { items, next: isEnd ? null : { tenant: query.tenant, name: last.key.toString() } };
  });
  return { storeTimeMs: null, ...page };
}

/**
 * Reading and writing records: one transaction each, whatever their number.
 *
 * A write is a transaction of its own inside it: if the key still has the expected version it is done, else the current
 * record is read, in the same round trip. So each write has its own condition and its own outcome, and together they cost
 * the cluster one agreement.
 */
import { encodeRecord, type LeaseKey } from "../../core/index.ts";
import type {
  ApplyReply,
  ConditionalWrite,
  ReadReply,
  StoredRecord,
  WriteResult,
} from "../../store/index.ts";
import type { Cluster } from "./cluster.ts";
import { comparesOf, type EtcdLayout, storedFrom, versionOf } from "./layout.ts";
import { type RequestOp, TXN, type TxnResponse } from "./messages.ts";

export interface Access {
  readonly cluster: Cluster;
  readonly layout: EtcdLayout;
}

/** A write as bytes. */
interface PreparedWrite {
  readonly write: ConditionalWrite;
  readonly key: Buffer;
  /** Null to delete. */
  readonly value: Buffer | null;
}

/**
 * Linearizable: the member asks its leader first how far it must have come. All keys are read at one revision, which is
 * part of the reply: core grants above it (`generation = max(previous, revision) + 1`). Every grant is a write and raises
 * the revision, so no generation is above the revision of the record that holds it; a key whose record was deleted, by
 * whomever, starts above all that it had.
 */
export async function readRecords(
  { cluster, layout }: Access,
  keys: readonly LeaseKey[],
): Promise<ReadReply> {
  if (keys.length === 0) return { storeTimeMs: null, records: [] };
  const success = keys.map((key) => ({ range: { key: layout.bytesOf(key) } }));
  const request = { compare: [], success, failure: [] };
  return await cluster.call(TXN, request, "not-applied", ({ responses }, revision) => {
    const records = keys.map((key, index) => currentIn(key, responses[index]));
    return { storeTimeMs: null, records, revision };
  });
}

/**
 * The condition of the outer transaction is empty, so its failure branch is never taken. It is there because etcd checks
 * its limit of space and the rights of the user only on what stands at this level: without it writes would pass that
 * etcd has to refuse.
 */
export async function applyWrites(
  { cluster, layout }: Access,
  writes: readonly ConditionalWrite[],
): Promise<ApplyReply> {
  if (writes.length === 0) return { storeTimeMs: null, results: [] };
  const prepared = writes.map((write) => prepare(layout, write));
  const request = { compare: [], success: prepared.map(conditional), failure: prepared.map(unconditional) };
  return await cluster.call(TXN, request, "unknown", ({ responses }, revision) => {
    // All writes of a batch have the revision of the whole.
    const results = prepared.map((each, index) => resultOf(each, responses[index]?.txn, String(revision)));
    return { storeTimeMs: null, results };
  });
}

function prepare(layout: EtcdLayout, write: ConditionalWrite): PreparedWrite {
  const value = write.next === null ? null : Buffer.from(encodeRecord(write.next));
  return { write, key: layout.bytesOf(write.key), value };
}

function conditional(prepared: PreparedWrite): RequestOp {
  const { write, key } = prepared;
  // To delete what must not exist changes nothing: the condition is all.
  const changesNothing = write.next === null && write.expected === null;
  const success = changesNothing ? [] : [unconditional(prepared)];
  return { txn: { compare: comparesOf(key, write.expected), success, failure: [{ range: { key } }] } };
}

function unconditional({ key, value }: PreparedWrite): RequestOp {
  return value === null ? { delete: { key } } : { put: { key, value } };
}

function resultOf(
  { write, value }: PreparedWrite,
  answer: TxnResponse | null | undefined,
  revision: string,
): WriteResult {
  if (answer === null || answer === undefined) throw missing("a write");
  if (answer.succeeded)
    return { kind: "applied", version: value === null ? null : versionOf(revision, value) };
  return { kind: "conflict", current: currentIn(write.key, answer.responses[0]) };
}

function currentIn(key: LeaseKey, response: TxnResponse["responses"][number] | undefined): StoredRecord {
  if (response?.range === undefined || response.range === null) throw missing("a read");
  return storedFrom(key, response.range.kvs[0]);
}

function missing(what: string): Error {
  return new Error(`not a message of etcd: the answer to ${what} is missing`);
}

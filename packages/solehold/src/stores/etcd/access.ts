/**
 * Reading and writing records: one request each, whatever their number.
 *
 * A write is a transaction: if the key still has the expected revision it is done, else the current record is
 * read, in the same round trip. Several writes are one transaction of such transactions: each has its own
 * condition and its own outcome, and together they cost the cluster one agreement.
 */
import type { LeaseKey } from "../../core/index.ts";
import type {
  ApplyReply,
  ConditionalWrite,
  ReadReply,
  StoredRecord,
  WriteResult,
} from "../../store/index.ts";
import { type Calls, RANGE_PATH, TRANSACTION_PATH } from "./calls.ts";
import { type EtcdLayout, revisionOf, storedFrom, versionOf } from "./layout.ts";
import {
  decodeRange,
  decodeTransaction,
  deleteOp,
  encodeCompare,
  encodeRange,
  encodeTransaction,
  putOp,
  type RangeResponse,
  type RequestOp,
  type ResponseOp,
  rangeOp,
  type TransactionRequest,
  type TransactionResponse,
  transactionOp,
} from "./messages.ts";
import { ProtocolError } from "./protobuf.ts";

export interface Access {
  readonly calls: Calls;
  readonly layout: EtcdLayout;
}

/** Linearizable: the member asks its leader first how far it must have come. */
export async function readRecords(access: Access, keys: readonly LeaseKey[]): Promise<ReadReply> {
  const [only] = keys;
  if (only === undefined) return { storeTimeMs: null, records: [] };
  const { records } = keys.length === 1 ? await readOne(access, only) : await readMany(access, keys);
  return { storeTimeMs: null, records };
}

interface Records extends Pick<RangeResponse, "header"> {
  readonly records: readonly StoredRecord[];
}

function readOne({ calls, layout }: Access, key: LeaseKey): Promise<Records> {
  const decode = (bytes: Uint8Array): Records => {
    const range = decodeRange(bytes);
    return { header: range.header, records: [currentIn(key, range)] };
  };
  return calls.call({ path: RANGE_PATH, decode }, encodeRange({ key: layout.bytesOf(key) }), "not-applied");
}

/** One transaction sees one state: no key is older than another. */
function readMany({ calls, layout }: Access, keys: readonly LeaseKey[]): Promise<Records> {
  const decode = (bytes: Uint8Array): Records => {
    const { header, responses } = decodeTransaction(bytes);
    return { header, records: keys.map((key, index) => currentIn(key, rangeIn(responses[index]))) };
  };
  const success = keys.map((key) => rangeOp({ key: layout.bytesOf(key) }));
  const request = encodeTransaction({ compare: [], success, failure: [] });
  return calls.call({ path: TRANSACTION_PATH, decode }, request, "not-applied");
}

export async function applyWrites(access: Access, writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
  const [only] = writes;
  if (only === undefined) return { storeTimeMs: null, results: [] };
  const { calls, layout } = access;
  const alone = writes.length === 1;
  const decode = (bytes: Uint8Array): Pick<TransactionResponse, "header"> & Pick<ApplyReply, "results"> => {
    const reply = decodeTransaction(bytes);
    const { header, responses } = reply;
    const results = writes.map((write, index) =>
      resultOf(write, alone ? reply : transactionIn(responses[index]), header.revision),
    );
    return { header, results };
  };
  const request = alone ? transactionOf(layout, only) : batchOf(layout, writes);
  const reply = await calls.call({ path: TRANSACTION_PATH, decode }, encodeTransaction(request), "unknown");
  return { storeTimeMs: null, results: reply.results };
}

function transactionOf(layout: EtcdLayout, write: ConditionalWrite): TransactionRequest {
  const key = layout.bytesOf(write.key);
  return {
    compare: [encodeCompare(key, revisionOf(write.key, write.expected))],
    success: changesOf(layout, write),
    failure: [rangeOp({ key })],
  };
}

/**
 * The condition of the outer transaction is empty, so its failure branch is never taken. It is there because
 * etcd checks its limit of space and the rights of the user only on what stands at this level: without it a
 * batch would pass where a lone write is refused.
 */
function batchOf(layout: EtcdLayout, writes: readonly ConditionalWrite[]): TransactionRequest {
  return {
    compare: [],
    success: writes.map((write) => transactionOp(transactionOf(layout, write))),
    failure: writes.map(({ key, next }) => {
      const bytes = layout.bytesOf(key);
      return next === null ? deleteOp(bytes) : putOp(bytes, "");
    }),
  };
}

/** To delete what must not exist changes nothing: the condition is all. */
function changesOf(layout: EtcdLayout, { key, expected, next }: ConditionalWrite): readonly RequestOp[] {
  if (next !== null) return [putOp(layout.bytesOf(key), layout.valueOf(next))];
  return expected === null ? [] : [deleteOp(layout.bytesOf(key))];
}

/** All writes of a batch have the revision of the whole. */
function resultOf(
  { key, next }: ConditionalWrite,
  { succeeded, responses }: TransactionResponse,
  revision: bigint,
): WriteResult {
  if (succeeded) return { kind: "applied", version: next === null ? null : versionOf(key, revision) };
  return { kind: "conflict", current: currentIn(key, rangeIn(responses[0])) };
}

function currentIn(key: LeaseKey, { pairs }: RangeResponse): StoredRecord {
  return storedFrom(key, pairs[0]);
}

function rangeIn(response: ResponseOp | undefined): RangeResponse {
  if (response?.kind === "range") return response.range;
  throw new ProtocolError("the answer to a read is missing");
}

function transactionIn(response: ResponseOp | undefined): TransactionResponse {
  if (response?.kind === "transaction") return response.transaction;
  throw new ProtocolError("the answer to a write is missing");
}

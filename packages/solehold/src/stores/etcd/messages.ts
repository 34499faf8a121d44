/**
 * The requests and replies of etcd's API version 3 that the store uses, with the field numbers of its
 * `rpc.proto`. Requests are encoded, replies decoded; what the store does not look at is not here.
 */
import { bytesField, MessageReader, numberField, ProtocolError } from "./protobuf.ts";

const EMPTY = new Uint8Array(0);
const COMPARE_MOD_REVISION = 2n;

/** An operation inside a transaction, encoded. */
export type RequestOp = Buffer;

export interface RangeRequest {
  readonly key: Uint8Array;
  /** The first key that no longer belongs to the range; without it the range is one key. */
  readonly rangeEnd?: Uint8Array;
  readonly limit?: number;
}

export interface TransactionRequest {
  /** All must hold for `success`. */
  readonly compare: readonly Buffer[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

export interface WatchRequest {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
  /** Zero: from now on. */
  readonly startRevision: bigint;
}

/** That the key was last written at this revision; zero when it must be absent. */
export function encodeCompare(key: Uint8Array, modRevision: bigint): Buffer {
  // EQUAL is the default result. A revision of zero is sent, too: it is one alternative of several.
  const target = numberField(2, COMPARE_MOD_REVISION);
  return Buffer.concat([target, bytesField(3, key), numberField(6, modRevision)]);
}

export function encodeRange({ key, rangeEnd, limit }: RangeRequest): Buffer {
  const parts = [bytesField(1, key)];
  if (rangeEnd !== undefined) parts.push(bytesField(2, rangeEnd));
  if (limit !== undefined) parts.push(numberField(3, BigInt(limit)));
  return Buffer.concat(parts);
}

export function rangeOp(request: RangeRequest): RequestOp {
  return bytesField(1, encodeRange(request));
}

export function putOp(key: Uint8Array, value: Uint8Array | string): RequestOp {
  return bytesField(2, Buffer.concat([bytesField(1, key), bytesField(2, value)]));
}

export function deleteOp(key: Uint8Array): RequestOp {
  return bytesField(3, bytesField(1, key));
}

export function transactionOp(request: TransactionRequest): RequestOp {
  return bytesField(4, encodeTransaction(request));
}

export function encodeTransaction({ compare, success, failure }: TransactionRequest): Buffer {
  return Buffer.concat([
    ...compare.map((each) => bytesField(1, each)),
    ...success.map((op) => bytesField(2, op)),
    ...failure.map((op) => bytesField(3, op)),
  ]);
}

/** With progress reports, so that a quiet watch does not fall behind, and large batches in pieces. */
export function encodeWatch({ key, rangeEnd, startRevision }: WatchRequest): Buffer {
  const create = [bytesField(1, key), bytesField(2, rangeEnd), numberField(3, startRevision)];
  return bytesField(1, Buffer.concat([...create, numberField(4, 1n), numberField(8, 1n)]));
}

export function encodeAuthenticate(name: string, password: string): Buffer {
  return Buffer.concat([bytesField(1, name), bytesField(2, password)]);
}

export interface ResponseHeader {
  readonly clusterId: bigint;
  readonly revision: bigint;
}

export interface KeyValue {
  readonly key: Uint8Array;
  readonly modRevision: bigint;
  readonly value: Uint8Array;
}

export interface RangeResponse {
  readonly header: ResponseHeader;
  readonly pairs: readonly KeyValue[];
  /** There are more in the range than the limit let through. */
  readonly more: boolean;
}

export interface TransactionResponse {
  readonly header: ResponseHeader;
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}

export type ResponseOp =
  | { readonly kind: "range"; readonly range: RangeResponse }
  | { readonly kind: "transaction"; readonly transaction: TransactionResponse }
  | { readonly kind: "done" };

export interface WatchResponse {
  readonly header: ResponseHeader;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly cancelReason: string;
  /** Above zero when the events before it are gone. */
  readonly compactRevision: bigint;
  /** More of the same follows. */
  readonly fragment: boolean;
  /** What was written, in order. A key that was deleted has an empty value. */
  readonly events: readonly KeyValue[];
}

export interface StatusResponse {
  readonly header: ResponseHeader;
  /** Zero while the member knows of none. */
  readonly leader: bigint;
}

const NO_HEADER: ResponseHeader = Object.freeze({ clusterId: 0n, revision: 0n });

function decodeHeader(bytes: Uint8Array): ResponseHeader {
  const reader = new MessageReader(bytes);
  let [clusterId, revision] = [0n, 0n];
  while (reader.next()) {
    if (reader.field === 1) clusterId = reader.unsigned();
    else if (reader.field === 3) revision = reader.signed();
  }
  return { clusterId, revision };
}

function decodeKeyValue(bytes: Uint8Array): KeyValue {
  const reader = new MessageReader(bytes);
  let [key, value, modRevision] = [EMPTY as Uint8Array, EMPTY as Uint8Array, 0n];
  while (reader.next()) {
    if (reader.field === 1) key = reader.bytes();
    else if (reader.field === 3) modRevision = reader.signed();
    else if (reader.field === 5) value = reader.bytes();
  }
  return { key, modRevision, value };
}

export function decodeRange(bytes: Uint8Array): RangeResponse {
  const reader = new MessageReader(bytes);
  let [header, more] = [NO_HEADER, false];
  const pairs: KeyValue[] = [];
  while (reader.next()) {
    if (reader.field === 1) header = decodeHeader(reader.bytes());
    else if (reader.field === 2) pairs.push(decodeKeyValue(reader.bytes()));
    else if (reader.field === 3) more = reader.flag();
  }
  return { header, pairs, more };
}

/** Batches are transactions of transactions, and nothing is deeper. */
const MAX_DEPTH = 2;

export function decodeTransaction(bytes: Uint8Array, depth = 1): TransactionResponse {
  if (depth > MAX_DEPTH) throw new ProtocolError("transactions are nested too deeply");
  const reader = new MessageReader(bytes);
  let [header, succeeded] = [NO_HEADER, false];
  const responses: ResponseOp[] = [];
  while (reader.next()) {
    if (reader.field === 1) header = decodeHeader(reader.bytes());
    else if (reader.field === 2) succeeded = reader.flag();
    else if (reader.field === 3) responses.push(decodeResponseOp(reader.bytes(), depth));
  }
  return { header, succeeded, responses };
}

function decodeResponseOp(bytes: Uint8Array, depth: number): ResponseOp {
  const reader = new MessageReader(bytes);
  let response: ResponseOp | null = null;
  while (reader.next()) {
    if (reader.field === 1) response = { kind: "range", range: decodeRange(reader.bytes()) };
    else if (reader.field === 4)
      response = { kind: "transaction", transaction: decodeTransaction(reader.bytes(), depth + 1) };
    else if (reader.field === 2 || reader.field === 3) response = { kind: "done" };
  }
  if (response === null) throw new ProtocolError("an operation has no answer");
  return response;
}

export function decodeWatch(bytes: Uint8Array): WatchResponse {
  const reader = new MessageReader(bytes);
  let [header, compactRevision, cancelReason] = [NO_HEADER, 0n, ""];
  let [created, canceled, fragment] = [false, false, false];
  const events: KeyValue[] = [];
  while (reader.next()) {
    if (reader.field === 1) header = decodeHeader(reader.bytes());
    else if (reader.field === 3) created = reader.flag();
    else if (reader.field === 4) canceled = reader.flag();
    else if (reader.field === 5) compactRevision = reader.signed();
    else if (reader.field === 6) cancelReason = reader.text();
    else if (reader.field === 7) fragment = reader.flag();
    else if (reader.field === 11) events.push(decodeEvent(reader.bytes()));
  }
  return { header, created, canceled, cancelReason, compactRevision, fragment, events };
}

function decodeEvent(bytes: Uint8Array): KeyValue {
  const reader = new MessageReader(bytes);
  let pair: KeyValue | null = null;
  while (reader.next()) if (reader.field === 2) pair = decodeKeyValue(reader.bytes());
  if (pair === null) throw new ProtocolError("an event names no key");
  return pair;
}

/** The token that later calls carry. */
export function decodeAuthenticate(bytes: Uint8Array): string {
  const reader = new MessageReader(bytes);
  let token = "";
  while (reader.next()) if (reader.field === 2) token = reader.text();
  return token;
}

export function decodeStatus(bytes: Uint8Array): StatusResponse {
  const reader = new MessageReader(bytes);
  let [header, leader] = [NO_HEADER, 0n];
  while (reader.next()) {
    if (reader.field === 1) header = decodeHeader(reader.bytes());
    else if (reader.field === 4) leader = reader.unsigned();
  }
  return { header, leader };
}

/**
 * The procedures of etcd's API 3 that the store uses, as in its `rpc.proto`. What the store does not look at is left
 * out: gRPC skips fields that it does not know. Numbers of 64 bits arrive as decimal text.
 */
const MESSAGES: Readonly<Record<string, string>> = {
  ResponseHeader: "uint64 clusterId = 1; int64 revision = 3;",
  KeyValue: "bytes key = 1; int64 modRevision = 3; bytes value = 5;",
  RangeRequest: "bytes key = 1; bytes rangeEnd = 2; int64 limit = 3;",
  RangeResponse: "ResponseHeader header = 1; repeated KeyValue kvs = 2; bool more = 3;",
  PutRequest: "bytes key = 1; bytes value = 2;",
  DeleteRequest: "bytes key = 1;",
  Compare: "int32 result = 1; int32 target = 2; bytes key = 3; int64 modRevision = 6; bytes value = 7;",
  RequestOp: "RangeRequest range = 1; PutRequest put = 2; DeleteRequest delete = 3; TxnRequest txn = 4;",
  ResponseOp: "RangeResponse range = 1; TxnResponse txn = 4;",
  TxnRequest: "repeated Compare compare = 1; repeated RequestOp success = 2; repeated RequestOp failure = 3;",
  TxnResponse: "ResponseHeader header = 1; bool succeeded = 2; repeated ResponseOp responses = 3;",
  WatchRequest: "WatchCreate create = 1;",
  WatchCreate:
    "bytes key = 1; bytes rangeEnd = 2; int64 startRevision = 3; bool progressNotify = 4; bool fragment = 8;",
  WatchResponse:
    "ResponseHeader header = 1; bool created = 3; bool canceled = 4; int64 compactRevision = 5; " +
    "string cancelReason = 6; bool fragment = 7; repeated Event events = 11;",
  Event: "int32 type = 1; KeyValue kv = 2;",
  StatusRequest: "",
  StatusResponse: "uint64 raftIndex = 5;",
  AuthenticateRequest: "string name = 1; string password = 2;",
  AuthenticateResponse: "string token = 2;",
};

const FIELD = /(repeated )?(\w+) (\w+) = (\d+);/g;

/** `{method}Request` is answered with `{method}Response`. The types of the two exist only here. */
export interface Procedure<Request, Reply> {
  readonly service: string;
  readonly method: string;
  readonly types?: readonly [Request, Reply];
}

export const RANGE: Procedure<RangeRequest, RangeResponse> = { service: "KV", method: "Range" };
export const TXN: Procedure<TxnRequest, TxnResponse> = { service: "KV", method: "Txn" };
export const WATCH: Procedure<WatchRequest, WatchResponse> = { service: "Watch", method: "Watch" };
export const STATUS: Procedure<object, StatusResponse> = { service: "Maintenance", method: "Status" };
export const AUTHENTICATE: Procedure<User, { readonly token: string }> = {
  service: "Auth",
  method: "Authenticate",
};

/** The above as JSON of protobufjs, for `fromJSON` of @grpc/proto-loader. */
export function protocolDescriptor(): object {
  const messages = Object.entries(MESSAGES).map(([name, text]) => [name, { fields: fieldsIn(text) }]);
  const services = [[RANGE, TXN], [WATCH], [STATUS], [AUTHENTICATE]].map((procedures) => {
    const methods = procedures.map(({ method }) => {
      const isStream = method === WATCH.method;
      const [requestType, responseType] = [`${method}Request`, `${method}Response`];
      return [method, { requestType, responseType, requestStream: isStream, responseStream: isStream }];
    });
    return [procedures[0]?.service, { methods: Object.fromEntries(methods) }];
  });
  return { nested: { etcdserverpb: { nested: Object.fromEntries([...messages, ...services]) } } };
}

function fieldsIn(text: string): object {
  const fields = [...text.matchAll(FIELD)].map(([, rule, type, name, id]) => {
    return [name, { type, id: Number(id), ...(rule === undefined ? {} : { rule: "repeated" }) }];
  });
  return Object.fromEntries(fields);
}

export interface RangeRequest {
  readonly key: Buffer;
  /** The first key that no longer belongs to the range; without it the range is one key. */
  readonly rangeEnd?: Buffer;
  readonly limit?: number;
}

/** Values of `result` and of `target`. */
export const [EQUAL, GREATER, LESS] = [0, 1, 2];
export const [MOD_REVISION, VALUE] = [2, 3];

export type Compare = { readonly result: number; readonly target: number; readonly key: Buffer } & (
  | { readonly modRevision: string }
  | { readonly value: Buffer }
);

export type RequestOp =
  | { readonly range: RangeRequest }
  | { readonly put: { readonly key: Buffer; readonly value: Buffer } }
  | { readonly delete: { readonly key: Buffer } }
  | { readonly txn: TxnRequest };

export interface TxnRequest {
  /** All must hold for `success`. */
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

export interface WatchRequest {
  readonly create: {
    readonly key: Buffer;
    readonly rangeEnd: Buffer;
    /** "0": from now on. */
    readonly startRevision: string;
    readonly progressNotify: boolean;
    readonly fragment: boolean;
  };
}

export interface User {
  readonly name: string;
  readonly password: string;
}

/** A reply without a part has null instead, or an empty list. */
export interface ReplyWithHeader {
  readonly header: { readonly clusterId: string; readonly revision: string } | null;
}

export interface KeyValue {
  readonly key: Buffer;
  readonly modRevision: string;
  readonly value: Buffer;
}

export interface RangeResponse extends ReplyWithHeader {
  readonly kvs: readonly KeyValue[];
  /** There are more in the range than the limit let through. */
  readonly more: boolean;
}

export interface TxnResponse extends ReplyWithHeader {
  readonly succeeded: boolean;
  readonly responses: readonly { readonly range: RangeResponse | null; readonly txn: TxnResponse | null }[];
}

export const DELETE_EVENT = 1;

export interface WatchResponse extends ReplyWithHeader {
  readonly created: boolean;
  readonly canceled: boolean;
  readonly cancelReason: string;
  /** Above zero when the events before it are gone. */
  readonly compactRevision: string;
  /** More of the same revision follows. */
  readonly fragment: boolean;
  readonly events: readonly { readonly type: number; readonly kv: KeyValue | null }[];
}

export interface StatusResponse {
  readonly raftIndex: string;
}

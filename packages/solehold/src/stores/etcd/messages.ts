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
const FIELD = /(?:(repeated) )?(\w+) (\w+) = (\d+);/g;

/** The above as JSON of protobufjs, for `fromJSON` of @grpc/proto-loader. */
export function protocolDescriptor(): object {
  const messages = Object.entries(MESSAGES).map(([message, text]) => {
    const parts = [...text.matchAll(FIELD)];
    const fields = parts.map(([, rule, type, name, id]) => [name, { rule, type, id: Number(id) }]);
    return [message, { fields: Object.fromEntries(fields) }];
  });
  const method = (name: string): object => ({
    [name]: { requestType: `${name}Request`, responseType: `${name}Response` },
  });
  const services = {
    KV: { methods: { ...method("Range"), ...method("Txn") } },
    Watch: { methods: method("Watch") },
    Maintenance: { methods: method("Status") },
    Auth: { methods: method("Authenticate") },
  };
  return { nested: { etcdserverpb: { nested: { ...Object.fromEntries(messages), ...services } } } };
}

/** What each procedure takes and answers. */
export interface Procedures {
  readonly "KV/Range": readonly [RangeRequest, RangeResponse];
  readonly "KV/Txn": readonly [TxnRequest, TxnResponse];
  readonly "Watch/Watch": readonly [WatchRequest, WatchResponse];
  readonly "Maintenance/Status": readonly [object, { readonly raftIndex: string }];
  readonly "Auth/Authenticate": readonly [User, { readonly token: string }];
}

export type User = Readonly<{ name: string; password: string }>;
/** All keys from `key` to before `rangeEnd`. */
export type KeyRange = Readonly<{ key: Buffer; rangeEnd: Buffer }>;
export type RangeRequest = Readonly<{ key: Buffer; rangeEnd?: Buffer; limit?: number }>;

/** Results and targets. */
export const COMPARE = { EQUAL: 0, GREATER: 1, LESS: 2, MOD_REVISION: 2, VALUE: 3 };
type Comparison = Readonly<{ key: Buffer; target: number; result: number }>;
export type Compare = Comparison & Readonly<{ modRevision: string } | { value: Buffer }>;
type Put = Readonly<{ key: Buffer; value: Buffer }>;
export type RequestOp = Readonly<
  { range: RangeRequest } | { put: Put } | { delete: RangeRequest } | { txn: TxnRequest }
>;
type Branches = Readonly<Record<"success" | "failure", readonly RequestOp[]>>;
/** All of `compare` must hold for `success`. */
export type TxnRequest = Branches & Readonly<{ compare: readonly Compare[] }>;
/** From `startRevision` on; "0" is the present. */
type WatchCreate = KeyRange & Readonly<{ startRevision: string; progressNotify: boolean; fragment: boolean }>;
export type WatchRequest = Readonly<{ create: WatchCreate }>;

/** What a reply does not contain is null, "0", false or empty. */
export type WithHeader = Readonly<{ header: Readonly<{ clusterId: string; revision: string }> | null }>;
export type KeyValue = Readonly<{ key: Buffer; modRevision: string; value: Buffer }>;
export type RangeResponse = WithHeader & Readonly<{ kvs: readonly KeyValue[]; more: boolean }>;
export type ResponseOp = Readonly<{ range: RangeResponse | null; txn: TxnResponse | null }>;
export type TxnResponse = WithHeader & Readonly<{ succeeded: boolean; responses: readonly ResponseOp[] }>;

export const DELETE_EVENT = 1;
export type WatchEvent = Readonly<{ type: number; kv: KeyValue | null }>;
/** A `compactRevision` above zero: the events before it are gone. A `fragment`: more of the same revision follows. */
export type WatchResponse = WithHeader &
  Readonly<{ created: boolean; canceled: boolean; cancelReason: string; compactRevision: string }> &
  Readonly<{ fragment: boolean; events: readonly WatchEvent[] }>;

/** What a server may do, but a real one cannot be told to: pieces of a revision, reports of progress, nonsense. */
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { afterEach, expect, it } from "vitest";
import { type EtcdStore, openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { bytesField, MessageReader, numberField } from "../../../src/stores/etcd/protobuf.ts";
import { recordOf, rejection, writeOf } from "../redis/records.ts";
import { Ear } from "./support.ts";

type Stream = ServerDuplexStream<Buffer, Buffer>;

const HEADER = (revision: bigint): Buffer =>
  bytesField(1, Buffer.concat([numberField(1, 1n), numberField(3, revision)]));
const CREATED = (revision: bigint): Buffer => Buffer.concat([HEADER(revision), numberField(3, 1n)]);
const NONSENSE = Buffer.from([0xff, 0xff, 0xff]);
const same = (bytes: Buffer): Buffer => bytes;

let server: Server;
let store: EtcdStore;

afterEach(async () => {
  await store.close();
  server.forceShutdown();
});

/** A server that answers what is needed to open a store, and hands over each watch with its request. */
async function start(onWatch: (stream: Stream, startRevision: bigint) => void, reply: Buffer): Promise<void> {
  server = new Server();
  const method = (path: string) => ({
    path,
    requestStream: path.endsWith("Watch/Watch"),
    responseStream: path.endsWith("Watch/Watch"),
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  });
  server.addService(
    {
      status: method("/etcdserverpb.Maintenance/Status"),
      range: method("/etcdserverpb.KV/Range"),
      transaction: method("/etcdserverpb.KV/Txn"),
      watch: method("/etcdserverpb.Watch/Watch"),
    },
    {
      status: (_call: unknown, answer: (error: null, reply: Buffer) => void) =>
        answer(null, Buffer.concat([HEADER(10n), numberField(4, 7n)])),
      range: (_call: unknown, answer: (error: null, reply: Buffer) => void) => answer(null, HEADER(10n)),
      transaction: (_call: unknown, answer: (error: null, reply: Buffer) => void) => answer(null, reply),
      watch: (stream: Stream) => {
        stream.on("error", () => undefined);
        stream.on("data", (request: Buffer) => onWatch(stream, startRevisionIn(request)));
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  store = await openEtcdStore({ url: `etcd://127.0.0.1:${port}`, timeoutMs: 2_000 });
}

function startRevisionIn(request: Buffer): bigint {
  const outer = new MessageReader(request);
  outer.next();
  const create = new MessageReader(outer.bytes());
  while (create.next()) if (create.field === 3) return create.signed();
  return -1n;
}

function event(name: string, revision: bigint): Buffer {
  const key = bytesField(1, `solehold/default/${name}`);
  return bytesField(11, bytesField(2, Buffer.concat([key, numberField(3, revision), bytesField(5, "?")])));
}

it("a watch goes on after what it has heard of completely, and after the progress that it was told of", async () => {
  const begun: bigint[] = [];
  const turns: ((stream: Stream) => void)[] = [
    (stream) => {
      stream.write(Buffer.concat([HEADER(11n), numberField(7, 1n), event("first piece", 11n)]));
      stream.end();
    },
    (stream) => {
      stream.write(Buffer.concat([HEADER(12n), event("first piece", 11n), event("second piece", 11n)]));
      stream.end();
    },
    (stream) => {
      stream.write(HEADER(50n));
      stream.end();
    },
    (stream) => void stream.write(NONSENSE),
    (stream) => void stream.write(Buffer.concat([HEADER(60n), event("last", 60n)])),
  ];
  await start((stream, startRevision) => {
    begun.push(startRevision);
    stream.write(CREATED(10n));
    turns.shift()?.(stream);
  }, HEADER(10n));
  const ear = new Ear();
  await store.watch({ tenant: "default", prefix: "" }, ear.listen);
  await ear.next((heard) => heard.kind === "changed" && heard.key.name === "last");
  expect(begun).toEqual([0n, 11n, 12n, 51n, 51n]);
  expect(ear.resets).toBe(0);
});

it.each([
  ["nonsense", NONSENSE],
  ["an answer without its operations", HEADER(11n)],
])("a write that is answered by %s is of unknown outcome", async (_what, reply) => {
  await start(() => undefined, reply);
  const error = await rejection(store.apply([writeOf(recordOf("answered"))]));
  expect(error).toMatchObject({ name: "StoreError", outcome: "unknown" });
  expect(error.message).toContain("not a message of etcd");
});

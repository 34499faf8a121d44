/** What a server may do, but a real one cannot be told to: pieces of a revision, progress, nonsense, no leader. */
import { Server, ServerCredentials, type ServerDuplexStream, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { type EtcdStore, openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { bytesField, MessageReader, numberField } from "../../../src/stores/etcd/protobuf.ts";
import { recordOf, rejection, writeOf } from "../records.ts";
import { Ear } from "./support.ts";

type Stream = ServerDuplexStream<Buffer, Buffer>;
type Answer = (error: object | null, reply?: Buffer) => void;

interface Script {
  /** Which member it says leads; zero for none. */
  readonly leader?: bigint;
  /** Whether its status waits until the other members had time to answer. */
  readonly pace?: "quick" | "slow";
  readonly range?: (answer: Answer) => void;
  readonly transaction?: (answer: Answer) => void;
  readonly watch?: (stream: Stream, startRevision: bigint) => void;
}

const headerAt = (revision: bigint, clusterId = 1n): Buffer =>
  bytesField(1, Buffer.concat([numberField(1, clusterId), numberField(3, revision)]));
const createdAt = (revision: bigint): Buffer => Buffer.concat([headerAt(revision), numberField(3, 1n)]);
const NONSENSE = Buffer.from([0xff, 0xff, 0xff]);
const NO_LEADER = { code: status.UNAVAILABLE, details: "etcdserver: no leader" };
const same = (bytes: Buffer): Buffer => bytes;

const servers: Server[] = [];
let store: EtcdStore | null = null;

afterEach(async () => {
  await store?.close();
  for (const server of servers.splice(0)) server.forceShutdown();
});

/** A server that follows the script, on a free port of loopback. */
async function start(script: Script): Promise<string> {
  const server = new Server();
  servers.push(server);
  const method = (path: string, streams: "streams" | "answers") => ({
    path,
    requestStream: streams === "streams",
    responseStream: streams === "streams",
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  });
  const whole = (answer: Answer): void => answer(null, headerAt(10n));
  const { leader = 7n, pace = "quick", range = whole, transaction = whole, watch } = script;
  server.addService(
    {
      status: method("/etcdserverpb.Maintenance/Status", "answers"),
      range: method("/etcdserverpb.KV/Range", "answers"),
      transaction: method("/etcdserverpb.KV/Txn", "answers"),
      watch: method("/etcdserverpb.Watch/Watch", "streams"),
    },
    {
      status: (_call: unknown, answer: Answer) => {
        const tell = (): void => answer(null, Buffer.concat([headerAt(10n), numberField(4, leader)]));
        if (pace === "quick") tell();
        else setTimeout(tell, 100);
      },
      range: (_call: unknown, answer: Answer) => range(answer),
      transaction: (_call: unknown, answer: Answer) => transaction(answer),
      watch: (stream: Stream) => {
        stream.on("error", () => undefined);
        stream.on("data", (request: Buffer) => watch?.(stream, startRevisionIn(request)));
      },
    },
  );
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(`127.0.0.1:${port}`) : reject(error),
    );
  });
}

async function open(...members: readonly string[]): Promise<EtcdStore> {
  store = await openEtcdStore({ url: `etcd://${members.join(",")}`, timeoutMs: 2_000 });
  return store;
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
  const last = (stream: Stream, message: Buffer): void => {
    stream.write(message);
    stream.end();
  };
  const turns: ((stream: Stream) => void)[] = [
    (stream) => last(stream, Buffer.concat([headerAt(11n), numberField(7, 1n), event("first piece", 11n)])),
    (stream) => last(stream, Buffer.concat([headerAt(12n), event("first piece", 11n), event("rest", 11n)])),
    (stream) => last(stream, headerAt(50n)),
    (stream) => void stream.write(NONSENSE),
    (stream) => void stream.write(Buffer.concat([headerAt(60n), event("last", 60n)])),
  ];
  const watch = (stream: Stream, startRevision: bigint): void => {
    begun.push(startRevision);
    stream.write(createdAt(10n));
    turns.shift()?.(stream);
  };
  const watching = await open(await start({ watch }));
  const ear = new Ear();
  await watching.watch({ tenant: "default", prefix: "" }, ear.listen);
  await ear.next((heard) => heard.kind === "changed" && heard.key.name === "last");
  expect(begun).toEqual([0n, 11n, 12n, 51n, 51n]);
  expect(ear.resets).toBe(0);
});

describe("a member", () => {
  it("that knows no leader is not used, however quick it is", async () => {
    let asked = 0;
    const range = (answer: Answer): void => {
      asked += 1;
      answer(NO_LEADER);
    };
    const reading = await open(await start({ leader: 0n, range }), await start({ pace: "slow" }));
    expect((await reading.read([recordOf("job").key])).records[0]!.kind).toBe("absent");
    expect(asked).toBe(0);
  });

  it("that failed is asked again only after the others", async () => {
    let asked = 0;
    const range = (answer: Answer): void => {
      asked += 1;
      answer(asked === 1 ? null : NO_LEADER, headerAt(10n));
    };
    const reading = await open(await start({ range }), await start({ pace: "slow" }));
    expect((await reading.read([recordOf("job").key])).records[0]!.kind).toBe("absent");
    // Once for opening, once for the read that it failed.
    expect(asked).toBe(2);
  });

  it.each([
    ["nonsense", NONSENSE],
    ["an answer without its operations", headerAt(11n)],
  ])("that answers a write with %s leaves its outcome unknown", async (_what, reply) => {
    const writing = await open(await start({ transaction: (answer) => answer(null, reply) }));
    const error = await rejection(writing.apply([writeOf(recordOf("answered"))]));
    expect(error).toMatchObject({ name: "StoreError", outcome: "unknown" });
    expect(error.message).toContain("not a message of etcd");
  });

  it.each([
    ["etcdserver: request timed out", "unknown"],
    ["etcdserver: leader changed", "unknown"],
    ["etcdserver: server stopped", "unknown"],
    ["etcdserver: no leader", "not-applied"],
    ["etcdserver: too many requests", "not-applied"],
  ])("that answers a write with '%s' leaves its outcome %s", async (details, outcome) => {
    const code = details.includes("many") ? status.RESOURCE_EXHAUSTED : status.UNAVAILABLE;
    const writing = await open(await start({ transaction: (answer) => answer({ code, details }) }));
    const error = await rejection(writing.apply([writeOf(recordOf("answered"))]));
    expect(error).toMatchObject({ name: "StoreError", kind: "unreachable", outcome });
  });
});

describe("a cluster that lost data", () => {
  it.each([
    ["went back from revision 10 to 9", headerAt(9n)],
    ["another cluster answers", headerAt(11n, 2n)],
  ])("serves nobody who saw what was there before: %s", async (what, reply) => {
    const done = Buffer.concat([reply, numberField(2, 1n)]);
    const member = await start({ transaction: (answer) => answer(null, done) });
    const writing = await open(member);
    const first = await rejection(writing.apply([writeOf(recordOf("lost"))]));
    expect(first).toMatchObject({ kind: "internal", outcome: "unknown" });
    expect(first.message).toContain(what);
    const later = await rejection(writing.read([recordOf("lost").key]));
    expect(later).toMatchObject({ kind: "internal", outcome: "not-applied" });
    await writing.close();
    const again = await open(member);
    expect((await again.read([recordOf("lost").key])).records[0]!.kind).toBe("absent");
  });
});

/** What a server may do, but a real one cannot be made to do: pieces of a revision, progress, nonsense, no leader, losses. */
import {
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";
import { afterEach, describe, expect, it } from "vitest";
import { type EtcdStore, openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { protocolDescriptor, type WatchRequest } from "../../../src/stores/etcd/messages.ts";
import { recordOf, rejection, writeOf } from "../records.ts";
import { EventLog } from "./support.ts";

type Stream = ServerDuplexStream<WatchRequest, object>;
type Answer = (error: object | null, reply?: object) => void;

interface Script {
  /** Whether reads wait until the other members had time to answer. */
  readonly pace?: "quick" | "slow";
  /** How long its log says that it is, whenever somebody asks. */
  readonly raftIndex?: () => number;
  readonly range?: (answer: Answer) => void;
  readonly txn?: (answer: Answer) => void;
  readonly watch?: (stream: Stream, startRevision: string) => void;
}

const headerAt = (revision: number, clusterId = "1"): object => ({ header: { clusterId, revision } });
const createdAt = (revision: number): object => ({ ...headerAt(revision), created: true });
/** No message that begins so is complete. */
const NONSENSE = Buffer.from([0xff, 0xff, 0xff]);
const NO_LEADER = { code: status.UNAVAILABLE, details: "etcdserver: no leader" };

const servers: Server[] = [];
let store: EtcdStore | null = null;

afterEach(async () => {
  await store?.close();
  for (const server of servers.splice(0)) server.forceShutdown();
});

/** The messages are those of the store, so only its tests on a real cluster show that they are etcd's. */
function serviceOf(name: string): ServiceDefinition {
  const definition = fromJSON(protocolDescriptor(), { longs: String })[`etcdserverpb.${name}`];
  const methods = Object.entries(definition as Readonly<Record<string, MethodDefinition<object, object>>>);
  const isStream = name === "Watch";
  return Object.fromEntries(
    methods.map(([method, { responseSerialize, ...rest }]) => {
      const serialize = (reply: object): Buffer =>
        Buffer.isBuffer(reply) ? reply : responseSerialize(reply);
      const streams = { requestStream: isStream, responseStream: isStream };
      return [method, { ...rest, ...streams, responseSerialize: serialize }];
    }),
  );
}

/** A server that follows the script, on a free port of loopback. */
async function start(script: Script): Promise<string> {
  const server = new Server();
  servers.push(server);
  const whole = (answer: Answer): void => answer(null, headerAt(10));
  const { pace = "quick", raftIndex = () => 1, range = whole, txn = whole, watch } = script;
  const services: Readonly<Record<string, UntypedServiceImplementation>> = {
    KV: {
      Range: (_call: unknown, answer: Answer) => {
        if (pace === "quick") range(answer);
        else setTimeout(() => range(answer), 100);
      },
      Txn: (_call: unknown, answer: Answer) => txn(answer),
    },
    Maintenance: { Status: (_call: unknown, answer: Answer) => answer(null, { raftIndex: raftIndex() }) },
    Watch: {
      Watch: (stream: Stream) => {
        stream.on("error", () => undefined);
        stream.on("data", ({ create }: WatchRequest) => watch?.(stream, String(create.startRevision)));
      },
    },
  };
  for (const [name, methods] of Object.entries(services)) server.addService(serviceOf(name), methods);
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

function event(name: string, modRevision: number): object {
  return { kv: { key: Buffer.from(`solehold/default/${name}`), modRevision, value: Buffer.from("?") } };
}

const { key } = recordOf("job");
const EMPTY_READ = { ...headerAt(10), responses: [{ range: {} }] };

it("a watch goes on after what it has received completely, and after the progress that was reported", async () => {
  const begun: string[] = [];
  const last = (stream: Stream, message: object): void => {
    stream.write(message);
    stream.end();
  };
  const turns: ((stream: Stream) => void)[] = [
    (stream) => last(stream, { ...headerAt(11), fragment: true, events: [event("first piece", 11)] }),
    (stream) => last(stream, { ...headerAt(12), events: [event("first piece", 11), event("rest", 11)] }),
    (stream) => last(stream, headerAt(50)),
    (stream) => void stream.write(NONSENSE),
    (stream) => void stream.write({ ...headerAt(60), events: [event("last", 60)] }),
  ];
  const watch = (stream: Stream, startRevision: string): void => {
    begun.push(startRevision);
    stream.write(createdAt(10));
    turns.shift()?.(stream);
  };
  const watching = await open(await start({ watch }));
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "" }, log.listener);
  await log.next((seen) => seen.kind === "changed" && seen.key.name === "last");
  expect(begun).toEqual(["0", "11", "12", "51", "51"]);
  expect(log.resets).toBe(0);
});

describe("a member", () => {
  it("that cannot read through a leader is not used, however quick it is", async () => {
    let asked = 0;
    const txn = (answer: Answer): void => {
      asked += 1;
      answer(NO_LEADER);
    };
    const blind = await start({ range: (answer) => answer(NO_LEADER), txn });
    const slow = await start({ pace: "slow", txn: (answer) => answer(null, EMPTY_READ) });
    const reading = await open(blind, slow);
    expect((await reading.read([key])).records[0]!.kind).toBe("absent");
    expect(asked).toBe(0);
  });

  it("that failed is left for another within the same call", async () => {
    let hasLeader = true;
    const range = (answer: Answer): void => (hasLeader ? answer(null, headerAt(10)) : answer(NO_LEADER));
    const txn = (answer: Answer): void => {
      hasLeader = false;
      answer(NO_LEADER);
    };
    const slow = await start({ pace: "slow", txn: (answer) => answer(null, EMPTY_READ) });
    const reading = await open(await start({ range, txn }), slow);
    expect((await reading.read([key])).records[0]!.kind).toBe("absent");
    expect(hasLeader).toBe(false);
  });

  it.each([
    ["nonsense", NONSENSE],
    ["an answer without its operations", headerAt(11)],
    ["an answer without a header", { succeeded: true }],
  ])("that answers a write with %s leaves its outcome unknown", async (_what, reply) => {
    const writing = await open(await start({ txn: (answer) => answer(null, reply) }));
    const error = await rejection(writing.apply([writeOf(recordOf("answered"))]));
    expect(error).toMatchObject({ name: "StoreError", outcome: "unknown" });
    expect(error.message).toContain("does not speak etcd's API 3");
  });

  it.each([
    ["etcdserver: request timed out", "unknown"],
    ["etcdserver: leader changed", "unknown"],
    ["etcdserver: server stopped", "unknown"],
    ["etcdserver: no leader", "not-applied"],
    ["etcdserver: too many requests", "not-applied"],
  ])("that answers a write with '%s' leaves its outcome %s", async (details, outcome) => {
    const code = details.includes("many") ? status.RESOURCE_EXHAUSTED : status.UNAVAILABLE;
    const writing = await open(await start({ txn: (answer) => answer({ code, details }) }));
    const error = await rejection(writing.apply([writeOf(recordOf("answered"))]));
    expect(error).toMatchObject({ name: "StoreError", kind: "unreachable", outcome });
  });
});

describe("a cluster that lost data", () => {
  it.each([
    ["went back from revision 10 to 9", headerAt(9)],
    ["another cluster answers", headerAt(11, "2")],
  ])("says so once to each who saw what was there before, and goes on: %s", async (what, after) => {
    let header = headerAt(10);
    const txn = (answer: Answer): void => {
      header = after;
      answer(null, { ...EMPTY_READ, ...header });
    };
    const writing = await open(await start({ range: (answer) => answer(null, header), txn }));
    const first = await rejection(writing.apply([writeOf(recordOf("lost"))]));
    expect(first).toMatchObject({ kind: "data-loss", outcome: "unknown" });
    expect(first.message).toContain(what);
    expect((await writing.read([key])).records[0]!.kind).toBe("absent");
  });

  it("is noticed by its log where its revisions went on, before anything is written, and its watches say reset", async () => {
    let raftIndex = 500;
    const begun: string[] = [];
    const streams: Stream[] = [];
    const watch = (stream: Stream, startRevision: string): void => {
      begun.push(startRevision);
      streams.push(stream);
      stream.write(createdAt(10));
    };
    let written = 0;
    const txn = (answer: Answer): void => {
      written += 1;
      answer(null, EMPTY_READ);
    };
    const down = { code: status.UNAVAILABLE, details: "down" };
    const member = await start({ raftIndex: () => raftIndex, watch, txn });
    const client = await open(member);
    const log = new EventLog();
    await client.watch({ tenant: null, prefix: "" }, log.listener);
    raftIndex = 4;
    streams[0]!.emit("error", down);
    await log.next(({ kind }) => kind === "reset");
    expect(begun).toEqual(["0", "0"]);
    const error = await rejection(client.apply([writeOf(recordOf("late"))]));
    expect(error).toMatchObject({ kind: "data-loss", outcome: "not-applied" });
    expect(error.message).toContain("its log went back from entry 500 to 4");
    expect(written).toBe(0);
    expect((await client.read([key])).records[0]!.kind).toBe("absent");
    expect(log.resets).toBe(1);
  });
});

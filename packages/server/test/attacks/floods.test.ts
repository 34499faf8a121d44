/** Clients that ask for more than they read: what they cost is bounded, whatever they send. */
import { connect as connectTcp } from "node:net";
import { KeyFile } from "@solehold/server";
import { ManualEnv, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import WebSocket from "ws";
import { ALL, bearer, keyedServer } from "../support/keys.ts";
import { type TestServer, tempFolder, testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

const LEASES = 1_000;
/** However many a list asks for. */
const PAGE = 250;

async function fill(url: string): Promise<void> {
  const stream = await TestStream.open(url);
  const metadata = Object.fromEntries(
    Array.from({ length: 7 }, (_, index) => [`m${index}`, "m".repeat(250)]),
  );
  const acquire = { op: "acquire", holder: "h", ttlMs: 3_600_000, note: "n".repeat(500), metadata };
  const answers = await stream.ask(
    ...Array.from({ length: LEASES }, (_, index) => ({ ...acquire, name: `n/${index}` })),
  );
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
}

/** Counts the listings that the store is asked for. */
function countLists({ server }: TestServer) {
  const { executor } = server.service;
  const list = executor.list.bind(executor);
  const counts = { begun: 0, underWay: 0, mostAtOnce: 0, mostInOneTurn: 0 };
  let inThisTurn = 0;
  Object.assign(executor, {
    list: async (query: Parameters<typeof list>[0]) => {
      counts.begun += 1;
      counts.underWay += 1;
      counts.mostAtOnce = Math.max(counts.mostAtOnce, counts.underWay);
      if (inThisTurn === 0)
        setImmediate(() => {
          inThisTurn = 0;
        });
      inThisTurn += 1;
      counts.mostInOneTurn = Math.max(counts.mostInOneTurn, inThisTurn);
      try {
        return await list(query);
      } finally {
        counts.underWay -= 1;
      }
    },
  });
  return counts;
}

describe("one message of many lists", () => {
  it("lets the event loop turn between them, however short they are", async () => {
    const server = await testServer();
    const counts = countLists(server);
    const stream = await TestStream.open(server.url);
    await stream.ask(...Array.from({ length: 400 }, () => ({ op: "list", limit: 1 })));
    expect(counts.begun).toBe(400);
    // A timer may fire twice in a turn; without turns it would be all of them.
    expect(counts.mostInOneTurn).toBeLessThan(100);
  });

  it("is served a few at a time, whole, with others between", async () => {
    const server = await testServer();
    await fill(server.url);
    const counts = countLists(server);
    const stream = await TestStream.open(server.url);
    const ids = stream.post(...Array.from({ length: 20 }, () => ({ op: "list", limit: LEASES })));
    await until("the lists have begun", () => counts.begun > 0);
    await server.get("/healthz");
    expect(counts.begun).toBeLessThan(20);
    for (const id of ids) expect((await stream.answer(id)).body.leases).toHaveLength(PAGE);
    expect(counts.mostAtOnce).toBeLessThanOrEqual(4);
  });

  it("waits while its client does not read, and costs no more than what was sent", async () => {
    const server = await testServer();
    await fill(server.url);
    const counts = countLists(server);
    const stream = await TestStream.open(server.url);
    stream.socket.pause();
    const ids = stream.post(...Array.from({ length: 50 }, () => ({ op: "list", limit: LEASES })));
    await until("the lists have begun", () => counts.begun > 0);
    // Many turns of the server's event loop: whatever it would begin without a reader, it has begun by then.
    for (let turn = 0; turn < 100; turn += 1) await server.get("/healthz");
    expect(counts.begun).toBeLessThan(25);
    stream.socket.resume();
    for (const id of ids) expect((await stream.answer(id)).status).toBe(200);
  });
});

describe("many short answers", () => {
  it("are not made for a client that does not read, and all come once it does", async () => {
    const server = await testServer();
    await fill(server.url);
    const { service } = server.server;
    const read = service.read.bind(service);
    let begun = 0;
    Object.assign(service, {
      read: async (key: Parameters<typeof read>[0]) => {
        begun += 1;
        return await read(key);
      },
    });
    const stream = await TestStream.open(server.url);
    stream.socket.pause();
    const get = { op: "get", name: "n/1" };
    const ids = Array.from({ length: 40 }, () => stream.post(...Array(250).fill(get))).flat();
    await until("some are made", () => begun > 250);
    // Many turns of the server's event loop: whatever it would begin without a reader, it has begun by then.
    for (let turn = 0; turn < 200; turn += 1) await fetch(`${server.url}/healthz`);
    expect(begun).toBeLessThan(7_000);
    stream.socket.resume();
    for (const id of ids) expect((await stream.answer(id)).status).toBe(200);
    expect(begun).toBe(10_000);
  });
});

describe("requests sent ahead of their answers on one HTTP connection", () => {
  const GET_LEASES = `GET /v1/leases?limit=${LEASES} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;

  function open({ url }: TestServer) {
    const { port, hostname } = new URL(url);
    const socket = connectTcp(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    const client = { socket, text: "", isClosed: false };
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      client.text += chunk;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      client.isClosed = true;
    });
    return client;
  }
  const statuses = ({ text }: { readonly text: string }): readonly string[] =>
    (text.match(/HTTP\/1\.1 \d+/g) ?? []).map((line) => line.slice(-3));
  const post = (op: string, body: object): string => {
    const text = JSON.stringify({ name: "job", holder: "h", token: "token-of-h", ...body });
    const head = `POST /v1/leases/${op} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`;
    return `${head}content-length: ${text.length}\r\n\r\n${text}`;
  };

  it("begin one after the other, in their order", async () => {
    const server = await testServer();
    const { executor } = server.server.service;
    const list = executor.list.bind(executor);
    // Long enough for others to begin beside it.
    const slowly = async (query: Parameters<typeof list>[0]) => {
      for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      return await list(query);
    };
    Object.assign(executor, { list: slowly });
    const counts = countLists(server);
    const client = open(server);
    client.socket.write(
      post("acquire", {}) + GET_LEASES.repeat(10) + post("release", {}) + post("renew", {}),
    );
    await until("all are answered", () => statuses(client).length === 13);
    expect(statuses(client)).toEqual(["200", ...Array.from({ length: 10 }, () => "200"), "200", "409"]);
    expect(counts).toMatchObject({ begun: 10, mostAtOnce: 1 });
    client.socket.write(post("acquire", {}));
    await until("the connection goes on", () => statuses(client).length === 14);
  });

  it("wait while their client does not read", async () => {
    const server = await testServer();
    await fill(server.url);
    const counts = countLists(server);
    const client = open(server);
    client.socket.pause();
    client.socket.write(GET_LEASES.repeat(30));
    await until("the first has begun", () => counts.begun > 0);
    // Many turns of the server's event loop: whatever it would begin without a reader, it has begun by then.
    for (let turn = 0; turn < 100; turn += 1) await server.get("/healthz");
    expect(counts.begun).toBeLessThan(20);
    client.socket.resume();
    await until("all are answered", () => statuses(client).length === 30);
  });

  it("are few: more of them end the connection", async () => {
    const server = await testServer();
    const counts = countLists(server);
    const client = open(server);
    client.socket.write(GET_LEASES.repeat(5_000));
    await until("the connection is closed", () => client.isClosed);
    expect(counts.begun).toBeLessThanOrEqual(33);
    expect((await server.get("/healthz")).status).toBe(200);
  });
});

describe("a count", () => {
  it("of many pages lets the event loop turn between them", async () => {
    const server = await testServer();
    await fill(server.url);
    const counts = countLists(server);
    expect((await server.get("/v1/leases/count?prefix=n/")).body.active).toBe(LEASES);
    expect(counts).toMatchObject({ begun: LEASES / PAGE, mostInOneTurn: 1 });
  });
});

describe("lists over many connections", () => {
  it("of one caller are few at a time, and all are answered", async () => {
    const server = await testServer();
    const { executor } = server.server.service;
    const list = executor.list.bind(executor);
    let begun = 0;
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    Object.assign(executor, {
      list: async (query: Parameters<typeof list>[0]) => {
        if (query.tenant === "default") begun += 1;
        await held;
        return await list(query);
      },
    });
    const answers = Array.from({ length: 40 }, () => server.get("/v1/leases"));
    await until("the first have begun", () => begun >= 4);
    for (let turn = 0; turn < 20; turn += 1) await server.get("/healthz");
    expect(begun).toBe(4);
    goOn();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    expect(begun).toBe(40);
  });
});

describe("what may be long", () => {
  const CHOICE = { leaseId: "a", candidates: [{ nodeId: "b", weight: 1 }] };
  type Asked = (server: TestServer, headers: Record<string, string>) => Promise<{ readonly status: number }>;

  it.each<[string, Asked]>([
    ["a count", (server, headers) => server.get("/v1/leases/count", headers)],
    ["a page of the audit", (server, headers) => server.get("/v1/audit", headers)],
    ["a choice", (server, headers) => server.post("/v1/coordinator/select", CHOICE, headers)],
  ])("waits for its caller's turn, and other callers do not: %s", async (_what, ask) => {
    const server = await keyedServer([{}, {}]);
    const [own = {}, other = {}] = server.keys.map(bearer);
    const { executor } = server.server.service;
    const list = executor.list.bind(executor);
    let begun = 0;
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    Object.assign(executor, {
      list: async (query: Parameters<typeof list>[0]) => {
        if (query.limit !== 7) return await list(query);
        begun += 1;
        await held;
        return await list(query);
      },
    });
    const lists = Array.from({ length: 4 }, () => server.get("/v1/leases?limit=7", own));
    await until("the lists have begun", () => begun === 4);
    let answered = false;
    const asked = ask(server, own).finally(() => {
      answered = true;
    });
    for (let turn = 0; turn < 50; turn += 1) expect((await ask(server, other)).status).toBe(200);
    expect(answered).toBe(false);
    goOn();
    for (const { status } of await Promise.all([asked, ...lists])) expect(status).toBe(200);
  });
});

describe("lists whose clients do not read", () => {
  /** Each answer is more than the operating system buffers between the two. */
  async function listsOf20MB(env?: ManualEnv) {
    const server = await testServer({}, env === undefined ? {} : { env });
    await server.lease("acquire", { name: "job", holder: "h" });
    const counts = countLists(server);
    const { executor } = server.server.service;
    const list = executor.list.bind(executor);
    const note = "n".repeat(20_000_000);
    Object.assign(executor, {
      list: async (query: Parameters<typeof list>[0]) => {
        const page = await list(query);
        return { ...page, leases: page.leases.map((lease) => ({ ...lease, note })) };
      },
    });
    return { server, counts };
  }
  const turn = async ({ url }: TestServer): Promise<void> => {
    for (let count = 0; count < 50; count += 1) await fetch(`${url}/healthz`);
  };

  it("over HTTP keep their places, until one has read or gone", async () => {
    const { server, counts } = await listsOf20MB();
    const { port, hostname } = new URL(server.url);
    const sockets = Array.from({ length: 8 }, () => {
      const socket = connectTcp(Number(port), hostname).pause();
      onTestFinished(() => void socket.destroy());
      socket.write("GET /v1/leases HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
      return socket;
    });
    await until("the first have begun", () => counts.begun === 4);
    await turn(server);
    expect(counts.begun).toBe(4);
    for (const socket of sockets) socket.resume();
    await until("the others have begun", () => counts.begun === 8);
  });

  it("over HTTP keep their places for 30 s, and no longer", async () => {
    const env = new ManualEnv();
    const { server, counts } = await listsOf20MB(env);
    const { port, hostname } = new URL(server.url);
    for (let client = 0; client < 8; client += 1) {
      const socket = connectTcp(Number(port), hostname).pause();
      socket.on("error", () => undefined);
      onTestFinished(() => void socket.destroy());
      socket.write("GET /v1/leases HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    }
    await until("the first have begun", () => counts.begun === 4);
    await turn(server);
    await env.advance(30_000);
    await until("the others have begun", () => counts.begun === 8);
  });

  it("over streams keep their places, until one has read or gone", async () => {
    const { server, counts } = await listsOf20MB();
    const streams = await Promise.all(Array.from({ length: 6 }, () => TestStream.open(server.url)));
    for (const stream of streams) {
      stream.socket.pause();
      stream.post({ op: "list" });
    }
    await until("the first have begun", () => counts.begun === 4);
    await turn(server);
    expect(counts.begun).toBe(4);
    for (const stream of streams.slice(0, 2)) stream.socket.resume();
    for (const stream of streams.slice(2)) stream.socket.terminate();
    await until("nothing is left", async () =>
      /^solehold_streams 2$/m.test((await server.get("/metrics")).text),
    );
    expect((await server.get("/v1/leases")).status).toBe(200);
  });
});

describe("requests without a key", () => {
  it("are answered at once while they are few, and the others later; those with one do not wait", async () => {
    const dataDir = await tempFolder();
    const env = new ManualEnv();
    const { key } = await new KeyFile(dataDir, realEnv).add(ALL);
    const server = await testServer({}, { dataDir, env });
    let answered = 0;
    const asked = Array.from({ length: 60 }, async () => {
      const { status } = await server.get("/v1/leases");
      answered += 1;
      return status;
    });
    await until("the first are answered", () => answered === 20);
    for (let turn = 0; turn < 50; turn += 1)
      expect((await server.get("/v1/lease?name=job", bearer(key))).status).toBe(404);
    expect(answered).toBe(20);
    await env.advance(250);
    await until("some more are answered", () => answered > 20);
    // Those that came together do not go together.
    expect(answered).toBeLessThan(30);
    await env.advance(250);
    expect(new Set(await Promise.all(asked))).toEqual(new Set([401]));
  });
});

describe("messages that are no operations", () => {
  it("count against the rate of their key", async () => {
    const server = await keyedServer([{}], { requestsPerSecond: "10" });
    const stream = await TestStream.open(server.url, bearer(server.keys[0]));
    const [first] = stream.post(...Array.from({ length: 100 }, () => ({ nonsense: 1 })));
    await until("the last is answered", () => stream.answers.get((first ?? 0) + 99) !== undefined);
    const statuses = [...stream.answers.values()].map(({ status }) => status);
    expect(statuses.filter((status) => status === 400).length).toBeLessThan(40);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(60);
  });
});

describe("WebSocket pings", () => {
  async function open(server: TestServer): Promise<WebSocket> {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/stream`);
    onTestFinished(() => socket.terminate());
    await new Promise((resolve, reject) => void socket.once("open", resolve).once("error", reject));
    return socket;
  }

  it("are answered once, the latest at least", async () => {
    const socket = await open(await testServer());
    const pongs: string[] = [];
    socket.on("pong", (data) => pongs.push(String(data)));
    for (let ping = 1; ping <= 100; ping += 1) socket.ping(`ping ${ping}`);
    await until("the last one is answered", () => pongs.includes("ping 100"));
    const [answer] = await Promise.all([
      new Promise((resolve) => void socket.once("pong", resolve)),
      socket.ping("end"),
    ]);
    expect(String(answer)).toBe("end");
    expect(new Set(pongs).size).toBe(pongs.length);
  });

  it("of a client that does not read them end its connection", async () => {
    const server = await testServer();
    const socket = await open(server);
    let closed = false;
    socket.on("close", () => {
      closed = true;
    });
    socket.on("error", () => undefined);
    socket.pause();
    const data = "x".repeat(125);
    // Far more than the operating system buffers between the two.
    for (let sent = 0; sent < 1_000_000 && !closed; sent += 1_000) {
      for (let ping = 0; ping < 999; ping += 1) socket.ping(data);
      await new Promise<void>((resolve) => socket.ping(data, true, () => resolve()));
      if (socket.readyState !== WebSocket.OPEN) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const isGone = async (): Promise<boolean> =>
      /^solehold_streams 0$/m.test((await server.get("/metrics")).text);
    await until("the server has ended it", isGone);
  });
});

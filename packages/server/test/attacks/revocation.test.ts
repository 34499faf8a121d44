/** A key that is revoked, expired or changed loses its power everywhere: also where it is in use already. */
import { readFile, writeFile } from "node:fs/promises";
import { KeyFile } from "@solehold/server";
import { ManualEnv, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { ALL, bearer, keyedServer } from "../support/keys.ts";
import { type TestServer, tempFolder, testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

type KeyedServer = Awaited<ReturnType<typeof keyedServer>>;

/** What can befall a key, from the one who has it: it stops being valid as it was. */
const ENDS: readonly (readonly [string, (server: KeyedServer) => Promise<unknown>])[] = [
  ["revoked", async ({ file, keys }) => expect(await file.revoke(idOf(keys[1]))).toBe(true)],
  ["narrowed", (server) => edit(server, { actions: ["metrics"] })],
];

const idOf = (key = ""): string => key.split("_")[1] ?? "";

/** Changes the second key in the file. */
async function edit({ file, keys }: KeyedServer, change: object): Promise<void> {
  const document = JSON.parse(await readFile(file.path, "utf8"));
  const stored = document.keys.find(({ id }: { id: string }) => id === idOf(keys[1]));
  Object.assign(stored, change);
  await writeFile(file.path, JSON.stringify(document));
}

async function events(server: TestServer, key: string | undefined): Promise<{ isOver(): boolean }> {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const response = await fetch(`${server.url}/v1/watch`, { headers: bearer(key), signal: abort.signal });
  let over = false;
  const drain = async (): Promise<void> => {
    for await (const _chunk of response.body ?? []);
  };
  drain()
    .catch(() => undefined)
    .finally(() => {
      over = true;
    });
  return { isOver: () => over };
}

const owner = { name: "job", holder: "first", token: "first-token" };
const held = { ...owner, ttlMs: 600_000 };
const wanted = { name: "job", holder: "second", token: "second-token", ttlMs: 600_000, waitMs: 60_000 };

describe.each(ENDS)("a key that is %s", (_what, endKey) => {
  it("ends its stream, and not that of another key", async () => {
    const server = await keyedServer([{}, {}]);
    const [other, stream] = await Promise.all(
      server.keys.map((key) => TestStream.open(server.url, bearer(key))),
    );
    await endKey(server);
    await until("the stream is closed", () => stream?.closed === 1008);
    expect((await other?.ask({ op: "acquire", ...held }))?.[0].status).toBe(200);
  });

  it("ends its event stream, and not that of another key", async () => {
    const server = await keyedServer([{}, {}]);
    const [other, watch] = await Promise.all(server.keys.map((key) => events(server, key)));
    await endKey(server);
    await until("the event stream is over", () => watch?.isOver() === true);
    expect(other?.isOver()).toBe(false);
  });

  it("ends its wait by HTTP with 401, and the lease goes to nobody", async () => {
    const server = await keyedServer([{}, {}]);
    await server.lease("acquire", held, bearer(server.keys[0]));
    const waiting = server.lease("acquire", wanted, bearer(server.keys[1]));
    await until("it waits", () => server.server.queue.size === 1);
    await endKey(server);
    expect((await waiting).status).toBe(401);
    expect(server.server.queue.size).toBe(0);
    await server.lease("release", owner, bearer(server.keys[0]));
    expect((await server.get("/v1/lease?name=job", bearer(server.keys[0]))).body.live).toBe(false);
  });

  it("ends its wait by the stream, and the lease goes to nobody", async () => {
    const server = await keyedServer([{}, {}]);
    await server.lease("acquire", held, bearer(server.keys[0]));
    const stream = await TestStream.open(server.url, bearer(server.keys[1]));
    stream.post({ op: "acquire", ...wanted });
    await until("it waits", () => server.server.queue.size === 1);
    await endKey(server);
    await until("nobody waits", () => server.server.queue.size === 0);
    await server.lease("release", owner, bearer(server.keys[0]));
    expect((await server.get("/v1/lease?name=job", bearer(server.keys[0]))).body.live).toBe(false);
  });
});

describe("a stream whose key was revoked", () => {
  it("takes no more commands from a client that does not go", async () => {
    const server = await keyedServer([{}, {}]);
    const stream = await TestStream.open(server.url, bearer(server.keys[1]));
    // The client neither reads nor answers the end, and goes on sending.
    stream.socket.pause();
    await server.file.revoke(idOf(server.keys[1]));
    await until("the key is refused", async () => {
      const { status } = await server.get("/v1/leases", bearer(server.keys[1]));
      return status === 401;
    });
    stream.post({ op: "acquire", ...held });
    await until("the server has no stream", async () => {
      const metrics = await server.get("/metrics", bearer(server.keys[0]));
      return /^solehold_streams 0$/m.test(metrics.text);
    });
    expect((await server.get("/v1/lease?name=job", bearer(server.keys[0]))).status).toBe(404);
  });
});

describe("the end of a key", () => {
  it("is known within a second", async () => {
    const [env, dataDir] = [new ManualEnv(), await tempFolder()];
    const file = new KeyFile(dataDir, realEnv);
    const { key, stored } = await file.add(ALL);
    const server = await testServer({}, { dataDir, env });
    const status = async () => (await server.get("/v1/leases", bearer(key))).status;
    expect(await status()).toBe(200);
    await file.revoke(stored.id);
    await env.advance(1_000);
    await until("it is refused", async () => (await status()) === 401);
  });
});

describe("a key that is not touched", () => {
  it("keeps what it has open when another one is added", async () => {
    const server = await keyedServer([{}]);
    const stream = await TestStream.open(server.url, bearer(server.keys[0]));
    const { key } = await server.file.add(ALL);
    await until(
      "the new key is known",
      async () => (await server.get("/v1/leases", bearer(key))).status === 200,
    );
    expect((await stream.ask({ op: "acquire", ...held }))[0].status).toBe(200);
  });
});

describe("what a key has open when its time is over", () => {
  it("ends with it, and not before: a stream, an event stream and a wait", async () => {
    const [env, dataDir] = [new ManualEnv(), await tempFolder()];
    const file = new KeyFile(dataDir, realEnv);
    const lasting = bearer((await file.add(ALL)).key);
    const expiresAt = new Date(env.wallMs() + 10_000).toISOString();
    const { key } = await file.add({ ...ALL, expiresAt });
    const server = await testServer({}, { dataDir, env });
    const [stream, other] = [
      await TestStream.open(server.url, bearer(key)),
      await TestStream.open(server.url, lasting),
    ];
    const watch = await events(server, key);
    await server.lease("acquire", held, lasting);
    const waiting = server.lease("acquire", wanted, bearer(key));
    await until("it waits", () => server.server.queue.size === 1);
    await env.advance(9_000);
    expect((await stream.ask({ op: "ping" }))[0].status).toBe(200);
    await env.advance(2_000);
    await until("the stream is closed", () => stream.closed === 1008);
    await until("the event stream is over", () => watch.isOver());
    expect((await waiting).status).toBe(401);
    expect((await other.ask({ op: "ping" }))[0].status).toBe(200);
  });
});

describe("what was opened before the first key", () => {
  it("ends with it: a stream, an event stream and a wait", async () => {
    const dataDir = await tempFolder();
    const server = await testServer({}, { dataDir });
    const stream = await TestStream.open(server.url);
    const watch = await events(server, undefined);
    await server.lease("acquire", held);
    const waiting = server.lease("acquire", wanted);
    await until("it waits", () => server.server.queue.size === 1);
    await new KeyFile(dataDir, realEnv).add(ALL);
    await until("the stream is closed", () => stream.closed === 1008);
    await until("the event stream is over", () => watch.isOver());
    expect((await waiting).status).toBe(401);
  });
});

/**
 * A reply that is not one's own. What stands between a client and Redis loses a reply or repeats one: then all later replies
 * are shifted. No call may take another's reply for its own.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { create, recordOf, rejection, until, writeOf } from "../records.ts";

/** What becomes of a piece as it came from the network. */
type Fate = (piece: Buffer) => readonly Buffer[];

const pass: Fate = (piece) => [piece];

class Box {
  replies: Fate = pass;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((near) => {
    const far = connect(Number(new URL(server.url).port), "127.0.0.1");
    for (const socket of [near, far]) {
      this.#sockets.add(socket.setNoDelay());
      socket.on("error", () => undefined).on("close", () => [near, far].map((each) => each.destroy()));
    }
    near.pipe(far);
    far.on("data", (piece) => this.replies(piece).map((each) => near.write(each)));
  });

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds the next reply until there is another, and then gives on what `fate` makes of both. */
  meddle(fate: (first: Buffer, second: Buffer) => readonly Buffer[]): { isHeld(): boolean } {
    let first: Buffer | null = null;
    this.replies = (piece) => {
      if (first !== null) {
        this.replies = pass;
        return fate(first, piece);
      }
      first = piece;
      return [];
    };
    return { isHeld: () => first !== null };
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

let server: Awaited<ReturnType<typeof startRedis>>;
let box: Box;
let url: string;
const opened: RedisStore[] = [];

beforeAll(async () => {
  server = await startRedis();
  box = new Box();
  url = await box.open();
});

afterEach(async () => {
  box.replies = pass;
  for (const store of opened.splice(0)) await store.close();
});

afterAll(async () => {
  box?.close();
  await server?.stop();
});

async function keep(store: Promise<RedisStore>): Promise<RedisStore> {
  opened.push(await store);
  return store;
}

describe.each([
  ["ioredis", () => ({ url })],
  ["node-redis", () => ({ client: createClient({ url }) })],
])("through %s", (client, options) => {
  /** The first call is under way, and its reply held; then the second is made. How both end. */
  async function shifted(
    fate: (first: Buffer, second: Buffer) => readonly Buffer[],
    first: (store: RedisStore) => Promise<unknown>,
    second: (store: RedisStore) => Promise<unknown>,
  ) {
    const store = await keep(openRedisStore({ ...options(), timeoutMs: 1_000 }));
    // The scripts are known to the server then.
    await create(store, recordOf(`warm/${client}/${expect.getState().currentTestName}`));
    await store.read([]);
    const { isHeld } = box.meddle(fate);
    const one = rejection(first(store));
    await until("the first reply is held", async () => (isHeld() ? true : null));
    const two = rejection(second(store));
    const ends = await Promise.all([one, two]);
    await until("the store answers again", () => store.read([]));
    return ends;
  }

  async function isStored(name: string): Promise<boolean> {
    const direct = await keep(openRedisStore({ url: server.url }));
    return (await direct.read([recordOf(name).key])).records[0]?.kind === "found";
  }

  it("a reply that is repeated is not taken for that of the next call", async () => {
    const name = `doubled/${client}`;
    const [one, two] = await shifted(
      (first, second) => [first, first, second],
      (store) => store.read([recordOf("other").key]),
      (store) => store.apply([writeOf(recordOf(name))]),
    );
    expect(one).toMatchObject({ kind: "answered" });
    expect(two).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "unknown" });
    expect(two.message).toContain("did not belong");
    expect(await isStored(name)).toBe(true);
  });

  it("the reply of the next call is not taken for one that was lost", async () => {
    const [name, taken] = [`lost/${client}`, `lost/taken/${client}`];
    await create(await keep(openRedisStore({ url: server.url })), recordOf(taken));
    const [one, two] = await shifted(
      (_, second) => [second],
      (store) => store.apply([writeOf(recordOf(name))]),
      (store) => store.apply([writeOf(recordOf(taken))]),
    );
    expect(one).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    expect(two).toMatchObject({ kind: "unreachable", outcome: "unknown" });
    expect(await isStored(name)).toBe(true);
  });

  it("an error that is repeated does not make the next write look as if it had been refused", async () => {
    const admin = new Redis(server.url);
    const name = `error/${client}`;
    const [, two] = await shifted(
      (first, second) => [first, first, second],
      async (store) => {
        await admin.config("SET", "maxmemory", "1");
        return store.apply([writeOf(recordOf(`error/refused/${client}`))]);
      },
      async (store) => {
        await admin.config("SET", "maxmemory", "0");
        return store.apply([writeOf(recordOf(name))]);
      },
    );
    expect(await isStored(name)).toBe(true);
    expect(two).toMatchObject({ name: "StoreError", outcome: "unknown" });
    admin.disconnect();
  });

  it("an error that is no reply of a script says nothing about what became of the write", async () => {
    const name = `stray/${client}`;
    const stray = Buffer.from("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    const [one] = await shifted(
      () => [stray],
      (store) => store.apply([writeOf(recordOf(name))]),
      (store) => store.read([]),
    );
    expect(one).toMatchObject({ name: "StoreError", outcome: "unknown" });
    expect(await isStored(name)).toBe(true);
  });

  it("a reply of which a piece in the middle is repeated is not believed", async () => {
    const record = recordOf(`middle/${client}`);
    const store = await keep(openRedisStore({ ...options(), timeoutMs: 1_000 }));
    await create(store, record);
    await store.read([]);
    box.replies = (piece) => {
      box.replies = pass;
      // The record's own bulk string: no "$" is in it.
      return [Buffer.from(`${piece}`.replace(/\$\d+\r\n[^$]*\nS\d\n[^$]*\r\n/, (bulk) => bulk + bulk))];
    };
    const failure = await rejection(store.read([record.key, recordOf("nobody's").key]));
    expect(failure).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "not-applied" });
    expect(failure.message).toContain("did not belong");
    await until("the store answers again", () => store.read([]));
  });

  it("a write that was carried out although its script was said to be missing is applied once", async () => {
    const name = `missing/${client}`;
    const missing = Buffer.from("-NOSCRIPT No matching script. Please use EVAL.\r\n");
    const store = await keep(openRedisStore({ ...options(), timeoutMs: 1_000 }));
    await create(store, recordOf(`${name}/warm`));
    box.replies = () => {
      box.replies = pass;
      return [missing];
    };
    const record = recordOf(name);
    const { results } = await store.apply([writeOf(record)]);
    expect(results).toMatchObject([{ kind: "applied" }]);
    const { records } = await store.read([record.key]);
    expect(records[0]).toMatchObject({ version: results[0]!.kind === "applied" && results[0]!.version });
  });
});

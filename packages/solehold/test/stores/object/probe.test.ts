/** Servers that ignore conditions are refused; what they can do is found out; open answers are settled. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { WriterLeaseStore } from "../../../src/client/writer/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { decodeWire, encodeWire } from "../../../src/stores/object/wire.ts";
import { FakeServer, type Manners } from "./fake-server.ts";

let server: FakeServer;
let url: string;

beforeEach(async () => {
  server = new FakeServer();
  url = await server.start();
});

afterEach(() => server.stop());

const LEASE = "/store/leases/db.lease.json";

describe("a server is refused when it", () => {
  it.each<[string, Partial<Manners>, RegExp]>([
    [
      "ignores If-None-Match",
      { ifNoneMatch: "ignored" },
      /it ignores If-None-Match, so it cannot keep leases/,
    ],
    ["ignores If-Match", { ifMatch: "ignored" }, /it ignores If-Match, so it cannot keep leases/],
    ["sends no Date", { date: "missing" }, /sends no Date header/],
    ["answers 500 to everything", { answer: 500 }, /cannot answer now: try again later \(HTTP 500\)/],
    ["answers 403 to everything", { answer: 403 }, /access is denied/],
  ])("%s", async (_what, manners, message) => {
    Object.assign(server.manners, manners);
    const error = await openObjectStore({ url }).catch((reason: Error) => reason);
    expect(error).toMatchObject({ name: "StoreError", message: expect.stringMatching(message) });
    expect((error as Error).message).not.toContain("\n");
  });
});

describe("the probe", () => {
  it("leaves nothing behind", async () => {
    await (await openObjectStore({ url })).close();
    expect([...server.objects.keys()]).toEqual([]);
  });

  it("finds out that ETags must be sent without quotes", async () => {
    server.manners.quotes = "bare";
    const leases = new WriterLeaseStore({ store: await openObjectStore({ url }) });
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    expect((await leases.refresh(lease, 90_000)).generation).toBe(1n);
  });

  it.each<[Manners["deleteIfMatch"], boolean]>([
    ["kept", true],
    ["ignored", false],
  ])(
    "of a server whose deletes have their conditions %s says conditionalDelete %s",
    async (kept, expected) => {
      server.manners.deleteIfMatch = kept;
      const store = await openObjectStore({ url });
      expect(store.capabilities.conditionalDelete).toBe(expected);
      const leases = new WriterLeaseStore({ store });
      const lease = await leases.tryAcquire("db", "writer-a", 60_000);
      await leases.release(lease);
      expect((await leases.tryAcquire("db", "writer-b", 60_000)).generation).toBe(expected ? 1n : 2n);
    },
  );
});

describe("an answer that leaves it open", () => {
  it.each([409, 500, 503])("(%i) to a write that was applied is settled by its nonce", async (status) => {
    const leases = new WriterLeaseStore({ store: await openObjectStore({ url }) });
    server.manners.answer = status;
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    expect(lease.generation).toBe(1n);
    expect(await leases.refresh(lease, 90_000)).toMatchObject({ generation: 1n });
  });

  it("without the new ETag is completed by a read", async () => {
    server.manners.etagInPutReply = "missing";
    const leases = new WriterLeaseStore({ store: await openObjectStore({ url }) });
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    expect(await leases.refresh(lease, 90_000)).toMatchObject({ generation: 1n });
  });

  it("is unknown when the record has moved on since, because ours may have been there in between", async () => {
    server.manners.deleteIfMatch = "ignored";
    const store = await openObjectStore({ url });
    await new WriterLeaseStore({ store }).tryAcquire("db", "writer-a", 60_000);
    const key = { tenant: "default", name: "db" };
    const [stored] = (await store.read([key])).records;
    if (stored?.kind !== "found") throw new Error("the lease is missing");
    const { record, version } = stored;
    const write = async (previous: string) => {
      server.manners.answer = 500;
      const text = encodeWire({ ...record, nonce: "theirs" }, { previous, epoch: 1 });
      // Another writer's record stands in the place of ours before we can look.
      const original = server.objects.set.bind(server.objects);
      server.objects.set = (name) => original(name, Buffer.from(text));
      const { results } = await store.apply([{ key, expected: version, next: { ...record, nonce: "ours" } }]);
      server.objects.set = original;
      original(LEASE, Buffer.from(encodeWire(record, { previous: null, epoch: 1 })));
      return results[0]?.kind;
    };
    expect(await write("a version after ours")).toBe("unknown");
    expect(await write(version)).toBe("conflict");
  });
});

describe("the generic HTTP store", () => {
  it("keeps leases at the agreed name, signed in with what the URL says", async () => {
    const leases = await connect(url.replace("//", "//user:p%40ss@"));
    const attempt = await leases.tryAcquire("db");
    expect(attempt.ok).toBe(true);
    const text = server.objects.get(LEASE)?.toString() ?? "";
    expect(decodeWire(text, { tenant: "default", name: "db" })).toMatchObject({ ok: true });
    const expected = `Basic ${Buffer.from("user:p@ss").toString("base64")}`;
    expect(new Set(server.requests.map(({ authorization }) => authorization))).toEqual(new Set([expected]));
    await leases.close();
  });

  it("has no listing", async () => {
    expect((await openObjectStore({ url })).list).toBeUndefined();
  });
});

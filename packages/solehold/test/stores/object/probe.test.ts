/** Servers that ignore conditions are refused; what they can do is found out. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { decodeWire } from "../../../src/stores/object/wire.ts";
import { WriterLeaseStore } from "../../../src/writer/index.ts";
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

describe("an answer without the new ETag", () => {
  it("is completed by a read", async () => {
    server.manners.etagInPutReply = "missing";
    const leases = new WriterLeaseStore({ store: await openObjectStore({ url }) });
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    expect(await leases.refresh(lease, 90_000)).toMatchObject({ generation: 1n });
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
    expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(new Set([expected]));
    await leases.close();
  });

  it("has no listing", async () => {
    expect((await openObjectStore({ url })).list).toBeUndefined();
  });
});

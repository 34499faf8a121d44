/** What is said about a write: done, not done, or nobody knows. "Not done" is never said of one that may have been. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ConditionalWrite, LeaseStore, StoreError } from "../../../src/store/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { encodeWire } from "../../../src/stores/object/wire.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";
import { FakeServer } from "./fake-server.ts";

let server: FakeServer;
let url: string;
let store: LeaseStore;
const LEASE = "/store/leases/db.lease.json";

beforeEach(async () => {
  server = new FakeServer();
  // Without conditional deletes, as S3: a key is created once.
  server.manners.deleteIfMatch = "ignored";
  url = await server.start();
  store = await openObjectStore({ url });
});

/** What is said of a write: its result, or the outcome of the rejected call. */
async function saidOf(write: ConditionalWrite, by: LeaseStore = store): Promise<string> {
  const call = applyOne(by, write);
  return call.then(
    ({ kind }) => kind,
    ({ outcome }: StoreError) => outcome,
  );
}

afterEach(async () => {
  await store.close();
  await server.stop();
});

describe("a write that a proxy sent twice", () => {
  it("is applied when the server refused only the second copy", async () => {
    server.manners.writes = "twice";
    const first = recordOf("db");
    const created = await applyOne(store, writeOf(first));
    expect(created).toMatchObject({ kind: "applied" });
    const version = created.kind === "applied" ? created.version : null;
    const [stored] = (await store.read([first.key])).records;
    expect(stored).toMatchObject({ kind: "found", version, record: { nonce: first.nonce } });
    expect(await applyOne(store, writeOf(recordOf("db"), version))).toMatchObject({ kind: "applied" });
  });

  it("is unknown when what is there cannot be read after the refusal", async () => {
    server.manners.writes = "twice";
    server.manners.refuse = ({ method }) => (method === "GET" ? { status: 503, code: "SlowDown" } : null);
    expect(await saidOf(writeOf(recordOf("db")))).toBe("unknown");
    expect(server.objects.has(LEASE)).toBe(true);
  });
});

describe("a create whose answer was lost", () => {
  it("is unknown on a new connection and on a used one", async () => {
    server.manners.afterWrite = "cut";
    for (const name of ["db", "other"]) {
      expect(await rejection(store.apply([writeOf(recordOf(name))]))).toMatchObject({ outcome: "unknown" });
    }
    expect(server.objects.has(LEASE)).toBe(true);
  });

  it("is unknown when no answer came in time: it is done later, and the same create then finds itself", async () => {
    const hasty = await openObjectStore({ url, timeoutMs: 200 });
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    server.manners.hold = () => held;
    const ours = recordOf("db");
    expect(await rejection(hasty.apply([writeOf(ours)]))).toMatchObject({
      kind: "timeout",
      outcome: "unknown",
    });
    letGo();
    await until("it is done", async () => (server.objects.has(LEASE) ? true : null));
    // The server answers 412 to the repeated request, and yet it was not somebody else's.
    expect(await saidOf(writeOf(ours), hasty)).toBe("applied");
    expect(await saidOf(writeOf(recordOf("db")), hasty)).toBe("conflict");
    await hasty.close();
  });

  it("is unknown when it had waited for a connection that another request left", async () => {
    const width = 300;
    server.manners.delayMs = 20;
    const writes = Array.from({ length: width }, (_, index) =>
      applyOne(store, writeOf(recordOf(`k-${index}`))),
    );
    await Promise.race(writes);
    server.manners.afterWrite = "cut";
    const ended = await Promise.allSettled(writes);
    const outcomes = ended.map((each) =>
      each.status === "fulfilled" ? each.value.kind : each.reason.outcome,
    );
    expect(new Set(outcomes)).toEqual(new Set(["applied", "unknown"]));
  });

  it("is not applied for certain when nothing was sent", async () => {
    await server.stop();
    // It may go out on a connection that the server has just closed, which nobody can know.
    await rejection(store.apply([writeOf(recordOf("db"))]));
    expect(await rejection(store.apply([writeOf(recordOf("db"))]))).toMatchObject({
      kind: "unreachable",
      outcome: "not-applied",
      message: expect.stringContaining("nothing listens there"),
    });
    server = new FakeServer();
  });
});

describe("the answer", () => {
  it.each([409, 500, 503, 429])("%i to a write that was applied is settled by its nonce", async (status) => {
    server.manners.answer = status;
    const version = await create(store, recordOf("db"));
    expect(await applyOne(store, writeOf(recordOf("db"), version))).toMatchObject({ kind: "applied" });
  });

  it.each([409, 500])(
    "%i to a create that is not there yet is unknown: it may still come",
    async (status) => {
      server.manners.refuse = ({ method }) => (method === "PUT" ? { status, code: "Conflict" } : null);
      // As a result, with the server's time, and not as a rejected call.
      expect(await applyOne(store, writeOf(recordOf("db")))).toMatchObject({
        kind: "unknown",
        cause: { kind: status === 409 ? "conflict" : "unreachable" },
      });
    },
  );

  it.each([412, 404])("%i means that the condition failed, and shows what is there", async (status) => {
    const theirs = recordOf("db", { holder: "them" });
    await create(store, theirs);
    server.manners.refuse = ({ method }) => (method === "PUT" ? { status, code: "" } : null);
    expect(await applyOne(store, writeOf(recordOf("db"), "0".repeat(32)))).toMatchObject({
      kind: "conflict",
      current: { record: { holder: "them" } },
    });
  });

  it("5xx is a conflict only where another write took the very step that ours wanted to take", async () => {
    const before = recordOf("db");
    const version = await create(store, before);
    const set = server.objects.set.bind(server.objects);
    const write = async (previous: string) => {
      set(LEASE, Buffer.from(encodeWire(before, { previous: null, epoch: 1 })));
      server.manners.answer = 500;
      const theirs = encodeWire(recordOf("db", { holder: "them" }), { previous, epoch: 1 });
      // Another writer's record stands in the place of ours before we can look.
      server.objects.set = (name) => set(name, Buffer.from(theirs));
      return await saidOf(writeOf(recordOf("db"), version));
    };
    expect(await write("a version after ours")).toBe("unknown");
    expect(await write(version)).toBe("conflict");
  });

  it("5xx to a create is unknown where keys can be deleted: ours may have been there before theirs", async () => {
    server.manners.deleteIfMatch = "kept";
    const deleting = await openObjectStore({ url });
    server.manners.answer = 500;
    const theirs = encodeWire(recordOf("db", { holder: "them" }), { previous: null, epoch: 1 });
    const set = server.objects.set.bind(server.objects);
    server.objects.set = (name) => set(name, Buffer.from(theirs));
    expect(await saidOf(writeOf(recordOf("db")), deleting)).toBe("unknown");
    server.objects.set = set;
    server.objects.delete(LEASE);
    server.objects.set = (name) => set(name, Buffer.from(theirs));
    expect(await applyOne(store, writeOf(recordOf("db")))).toMatchObject({ kind: "conflict" });
  });

  it("403 to both writes of a call rejects it as not applied; to one of them makes that one unknown", async () => {
    const refuse = (name: string) => {
      server.manners.refuse = ({ method, url }) =>
        method === "PUT" && url.includes(name) ? { status: 403, code: "AccessDenied" } : null;
    };
    refuse("lease.json");
    const both = [writeOf(recordOf("db")), writeOf(recordOf("other"))];
    expect(await rejection(store.apply(both))).toMatchObject({ kind: "auth", outcome: "not-applied" });
    refuse("other");
    expect((await store.apply(both)).results).toMatchObject([{ kind: "applied" }, { kind: "unknown" }]);
  });
});

/** What is in Redis: which keys, for how long, and what a user needs to be allowed. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { openRedisStore } from "../../../src/stores/redis/index.ts";
import { pageBlock } from "../page-block.ts";
import { applyOne, create, HIGH, recordOf, rejection, writeOf } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});

afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

it("every key lies under the prefix, in one slot, and none ever expires", async () => {
  await admin.flushall();
  const store = await openRedisStore({ url: server.url, prefix: "app:leases:" });
  const version = await create(store, recordOf("a/{b}/c"));
  const ended = recordOf("a/{b}/c", { generation: HIGH + 1n, state: "released", endedAtMs: 1 });
  await applyOne(store, writeOf(ended, version));
  const keys = await admin.keys("*");
  expect(keys.length).toBe(3);
  for (const key of keys) {
    expect(key.startsWith("{app:leases:}")).toBe(true);
    expect(await admin.ttl(key)).toBe(-1);
  }
  expect(keys).toContain("{app:leases:}default/a/{b}/c");
  await store.close();
});

it("a deleted record leaves nothing behind, in the index neither", async () => {
  await admin.flushall();
  const store = await openRedisStore({ url: server.url });
  const record = recordOf("gone");
  const version = await create(store, record);
  expect(await admin.zcard("{solehold:}$index")).toBe(1);
  await applyOne(store, { key: record.key, expected: version, next: null });
  expect(await admin.keys("{solehold:}*")).toEqual(["{solehold:}$identity"]);
  await store.close();
});

it("an index that names a record which is gone does not disturb a listing", async () => {
  await admin.flushall();
  const store = await openRedisStore({ url: server.url });
  for (const name of ["a", "b", "c"]) await create(store, recordOf(name));
  await admin.del("{solehold:}default/b");
  const page = await store.list({ tenant: "default", prefix: "", limit: 10 });
  expect(page.records.map(({ key }) => key.name)).toEqual(["a", "c"]);
  await store.close();
});

it("damage is listed once, in its place", async () => {
  await admin.flushall();
  const store = await openRedisStore({ url: server.url });
  for (const name of ["a", "b", "c", "d"]) await create(store, recordOf(name));
  await admin.set("{solehold:}default/b", "garbage");
  await admin.set("{solehold:}default/d", "garbage");
  const pages: string[][] = [];
  let after: string | undefined;
  do {
    const query = { tenant: "default", prefix: "", limit: 1, ...(after === undefined ? {} : { after }) };
    const { records, corrupt, next } = await store.list(query);
    pages.push([...records, ...corrupt].map(({ key }) => key.name).sort());
    after = next ?? undefined;
  } while (after !== undefined);
  expect(pages).toEqual([["a"], ["b"], ["c"], ["d"]]);
  await store.close();
});

it("a user with the rights that the page names can do everything, and touches no other key", async () => {
  await admin.flushall();
  const [command = "", ...words] = pageBlock("redis.md", "Rights of a dedicated user", "")
    .trim()
    .split(/\s+/);
  await admin.call(command, ...words);
  const url = server.url.replace("redis://", "redis://leases:password@");
  const store = await openRedisStore({ url });
  const watched = new Promise<unknown>((resolve) => {
    store.watch({ tenant: null, prefix: "" }, resolve).then(() => create(store, recordOf("job")));
  });
  await watched;
  const stored = (await store.read([recordOf("job").key])).records[0]!;
  if (stored.kind !== "found") throw new Error("the record was created");
  const ended = writeOf(recordOf("job", { state: "released", endedAtMs: 1 }), stored.version);
  const written = await applyOne(store, ended);
  const version = written.kind === "applied" ? written.version : null;
  await applyOne(store, { key: stored.record.key, expected: version, next: null });
  await store.list({ tenant: "default", prefix: "", limit: 1 });
  await admin.set("{solehold:}default/bad", "garbage");
  expect((await store.read([recordOf("bad").key])).records[0]!.kind).toBe("corrupt");
  const withoutReplica = await rejection(openRedisStore({ url, replicas: 1, timeoutMs: 500 }));
  expect(withoutReplica).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
  // The one thing that is asked for but not needed is how often the server syncs.
  const denials = (await admin.call("ACL", "LOG")) as unknown[][];
  const denied = new Set(denials.map((denial) => denial[denial.indexOf("object") + 1]));
  expect([...denied]).toEqual(["config|get"]);
  await store.close();
});

it("a user who may not is refused as such when the store is opened", async () => {
  await admin.call("ACL", "SETUSER", "nobody", "on", ">lease", "~other:*", "&*", "+@all");
  const error = await rejection(
    openRedisStore({ url: server.url.replace("redis://", "redis://nobody:lease@") }),
  );
  expect(error).toMatchObject({ name: "StoreError", kind: "auth", outcome: "not-applied" });
});

it("a user who may not announce changes can write all the same", async () => {
  const rules = ["on", ">lease", "~{solehold:}*", "resetchannels", "+@all"];
  await admin.call("ACL", "SETUSER", "silent", ...rules);
  const store = await openRedisStore({ url: server.url.replace("redis://", "redis://silent:lease@") });
  const version = await create(store, recordOf("silent"));
  const ended = writeOf(recordOf("silent", { state: "released", endedAtMs: 1 }), version);
  expect((await applyOne(store, ended)).kind).toBe("applied");
  const refused = await rejection(store.watch({ tenant: null, prefix: "" }, () => undefined));
  expect(refused).toMatchObject({ kind: "auth", outcome: "not-applied" });
  await store.close();
});

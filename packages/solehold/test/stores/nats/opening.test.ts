/** Opening with something wrong: one line that says what to do, at once, and never a password. */
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { replicaProblem } from "../../../src/stores/nats/bucket.ts";
import { type NatsStoreOptions, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { pageBlock } from "../page-block.ts";
import { applyOne, create, recordOf, rejection, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";

const ACCOUNTS = `accounts {
  leases {
    jetstream: enabled
    users: [
      { user: admin, password: s3cret }
      { user: reader, password: s3cret, permissions: { publish: ["$JS.API.>"], subscribe: ["_INBOX.>"] } }
      { user: deaf, password: s3cret, permissions: { publish: [">"], subscribe: ["nothing"] } }
      { user: dedicated, password: s3cret, ${pageBlock("nats.md", "Rights of a dedicated user", "").trim()} }
    ]
  }
  other { users: [{ user: without, password: s3cret }] }
}`;

let server: Engine;
let guarded: Engine;
let admin: Admin;
const listeners: Server[] = [];

beforeAll(async () => {
  [server, guarded] = await Promise.all([
    startNats({ settings: ["authorization { token: s3cret }"] }),
    startNats({ settings: [ACCOUNTS] }),
  ]);
  admin = new Admin(as("admin"));
});

afterAll(async () => {
  for (const listener of listeners) listener.close();
  await Promise.all([server?.stop(), guarded?.stop()]);
});

const as = (user: string, password = "s3cret"): string => guarded.url.replace("//", `//${user}:${password}@`);

async function listening(listener: Server): Promise<number> {
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return (listener.address() as AddressInfo).port;
}

async function failure(options: NatsStoreOptions) {
  const error = await rejection(openNatsStore({ timeoutMs: 2_000, ...options }));
  expect(error).toMatchObject({ name: "StoreError", outcome: "not-applied" });
  expect(error.message).not.toMatch(/\n|s3cret|wr0ng/);
  return error;
}

describe("a URL", () => {
  it("with a port where nothing listens is unreachable", async () => {
    const port = await listening(createServer());
    listeners.pop()?.close();
    const error = await failure({ url: `nats://127.0.0.1:${port}` });
    expect(error).toMatchObject({ kind: "unreachable" });
    expect(error.message).toContain("start nats-server or correct the URL");
  });

  it("with an unknown host is unreachable", async () => {
    const error = await failure({ url: "nats://no-such-host.invalid" });
    expect(error).toMatchObject({ kind: "unreachable" });
    expect(error.message).toContain("that host is unknown");
  });

  it("with a wrong password, a wrong token or none where one is due is an auth error", async () => {
    const urls = [
      as("admin", "wr0ng"),
      guarded.url,
      server.url.replace("//", "//wr0ng@"),
      server.url.replace("//", "//admin:wr0ng@"),
    ];
    for (const url of urls) {
      const error = await failure({ url });
      expect(error).toMatchObject({ kind: "auth" });
      expect(error.message).toContain("correct user and password, or the token");
    }
  });

  it("with the right token opens, through connect() too, and several hosts are tried", async () => {
    const port = await listening(createServer());
    listeners.pop()?.close();
    const { host } = new URL(server.url.replace("nats:", "http:"));
    const leases = await connect(`nats://s3cret@127.0.0.1:${port},${host}/by_connect`);
    const { lease } = (await leases.tryAcquire("opened")) as Extract<
      Awaited<ReturnType<typeof leases.tryAcquire>>,
      { ok: true }
    >;
    expect(lease.fence).toBeGreaterThan(0n);
    await lease.release();
    await leases.close();
  });

  it("of something that is not NATS is a config error", async () => {
    const port = await listening(
      createServer((socket) => void socket.on("error", () => undefined).write("220 ready\r\n")),
    );
    const error = await failure({ url: `nats://127.0.0.1:${port}` });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain("not a NATS server");
  });

  it("of something that never answers fails within the timeout", async () => {
    const port = await listening(createHttpServer());
    const error = await failure({ url: `nats://127.0.0.1:${port}`, timeoutMs: 200 });
    expect(error.kind).toMatch(/timeout|unreachable/);
  });

  it("with TLS to a server without is a config error", async () => {
    for (const scheme of ["tls:", "nats+tls:"]) {
      const error = await failure({ url: server.url.replace("nats:", scheme) });
      expect(error).toMatchObject({ kind: "config" });
      expect(error.message).toContain("does not offer TLS");
    }
  });

  it.each([
    ["nonsense", "must look like"],
    ["http://127.0.0.1", "must look like"],
    ["nats://", "must look like"],
    ["nats://user:s3cret@127.0.0.1/b?x=1", "without a query"],
    ["nats://127.0.0.1:port", "must name hosts"],
    ["nats://127.0.0.1:99999", "ports up to 65535"],
    ["nats://a,,b", "must name hosts"],
    ["nats://%ZZ:s3cret@127.0.0.1", "percent-encoded"],
    ["nats://127.0.0.1/dotted.bucket", "bucket must have"],
  ])("like %s is a config error that says how it should look", async (url, rule) => {
    const error = await failure({ url });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain(rule);
  });
});

it.each([
  [{ bucket: "" }, "bucket"],
  [{ bucket: "with space" }, "bucket"],
  [{ replicas: 0 }, "replicas"],
  [{ timeoutMs: 0 }, "timeoutMs"],
  [{ timeoutMs: Number.NaN }, "timeoutMs"],
  [{ syncInterval: "2m" as never }, "syncInterval"],
  [{ syncInterval: true as never }, "syncInterval"],
])("an option of %j is refused by name", async (wrong, name) => {
  const error = await failure({ url: server.url, ...wrong });
  expect(error).toMatchObject({ kind: "config" });
  expect(error.message).toContain(name);
});

describe("a server", () => {
  it("without JetStream for the account is a config error", async () => {
    const error = await failure({ url: as("without") });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain("--jetstream");
  });

  it("before 2.10.23 is refused for replicas, with its version, the reason and the fix, and nothing is created", async () => {
    const error = await failure({ url: as("admin"), bucket: "many", replicas: 3 });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain(guarded.version);
    expect(error.message).toContain("some replicas may store a conditional write that others refuse");
    expect(error.message).toContain("upgrade all servers to 2.10.23 or later, or use one replica");
    expect(await admin.buckets()).not.toContain("many");
  });

  it.each([
    ["2.9.10", 1, null],
    ["2.9.10", 3, "2.10.23 or later"],
    ["2.9.25", 3, "2.10.23 or later"],
    ["2.10.22", 3, "2.10.23 or later"],
    ["2.8.4", 5, "2.10.23 or later"],
    ["", 3, "2.10.23 or later"],
    ["2.10.23", 3, null],
    ["2.10.23-RC.2", 3, null],
    ["2.11.0-preview.1", 3, null],
    ["2.12.1", 5, null],
    ["3.0.0", 3, null],
  ])(
    "of version '%s' with %i replicas is refused if its conditions cannot be trusted",
    (version, replicas, advice) => {
      const problem = replicaProblem(version, replicas);
      if (advice === null) expect(problem).toBeNull();
      else expect(problem).toContain(advice);
    },
  );

  it("whose user may only read is an auth error that names the rights, without waiting for a timeout", async () => {
    await admin.createBucket("readable");
    const error = await failure({ url: as("reader"), bucket: "readable", timeoutMs: 60_000 });
    expect(error).toMatchObject({ kind: "auth" });
    expect(error.message).toContain("docs/stores/nats.md");
  });

  it("whose user may not hear replies is an auth error, without waiting for a timeout", async () => {
    const error = await failure({ url: as("deaf"), timeoutMs: 60_000 });
    expect(error).toMatchObject({ kind: "auth" });
  });

  it("serves a dedicated user with the rights of the documentation", async () => {
    await admin.createBucket("leases");
    const store = await openNatsStore({ url: `${as("dedicated")}/leases` });
    const received = new Promise((resolve) => {
      void store.watch({ tenant: null, prefix: "" }, resolve);
    });
    const record = recordOf("dedicated");
    const version = await create(store, record);
    expect((await store.read([record.key])).records).toMatchObject([{ version }]);
    expect((await store.list({ tenant: "default", prefix: "", limit: 5 })).records).toHaveLength(1);
    expect((await applyOne(store, { ...writeOf(record, version), next: null })).kind).toBe("applied");
    await received;
    await store.close();
  });
});

describe("a bucket", () => {
  it.each([
    ["that lets records end", { max_age: 60_000_000_000 }, "--max-age=0"],
    ["that discards old records", { discard: "old" }, "--discard=new"],
    ["that has a limit of bytes", { max_bytes: 1_000_000 }, "--max-bytes=-1"],
    ["that has a limit of messages", { max_msgs: 1_000 }, "--max-msgs=-1"],
    ["that refuses to replace a record", { discard_new_per_subject: true }, "discard_new_per_subject"],
    ["that acknowledges nothing", { no_ack: true }, "no_ack"],
    ["that is a work queue", { retention: "workqueue" }, "'limits'"],
    ["whose stream takes other subjects", { subjects: ["something.else"] }, "no key-value bucket"],
  ])("%s is refused", async (what, changes, advice) => {
    const bucket = what.replaceAll(" ", "-");
    await admin.createBucket(bucket, changes as never);
    const error = await failure({ url: as("admin"), bucket });
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain(advice);
  });

  it("that is made here is one that the tools of NATS read: history, delete markers, values", async () => {
    const store = await openNatsStore({ url: as("admin"), bucket: "genuine" });
    const record = recordOf("reports/nightly run");
    const version = await create(store, record);
    const keys = await admin.keys("genuine");
    const key = keys.find((each) => each.endsWith(".default.reports.nightly=20run")) ?? "";
    expect(await admin.get("genuine", key)).toContain(record.nonce);
    expect(keys).toContain("identity");
    await applyOne(store, { key: record.key, expected: version, next: null });
    expect(await admin.keys("genuine")).not.toContain(key);
    const { config } = await admin.bucketInfo("genuine");
    expect(config).toMatchObject({ deny_delete: true, allow_direct: true, max_msgs_per_subject: 1 });
    await store.close();
  });

  it("is durable only where sync_interval: always is stated, and the records are in files", async () => {
    await admin.createBucket("in-memory", { storage: "memory" as never });
    const stores = [
      await openNatsStore({ url: as("admin") }),
      await openNatsStore({ url: as("admin"), syncInterval: "always" }),
      await openNatsStore({ url: as("admin"), syncInterval: "always", bucket: "in-memory" }),
    ];
    expect(stores.map(({ capabilities }) => capabilities.durable)).toEqual([false, true, false]);
    for (const store of stores) await store.close();
  });
});

it.each(["@nats-io/transport-node", "@nats-io/jetstream"])(
  "a missing package %s is a config error that names the command to run",
  async (name) => {
    vi.resetModules();
    vi.doMock(name, () => {
      throw new Error(`Cannot find package '${name}'`);
    });
    const { openNatsStore: openWithout } = await import("../../../src/stores/nats/index.ts");
    const error = await rejection(openWithout({ url: server.url }));
    vi.doUnmock(name);
    expect(error).toMatchObject({ kind: "config" });
    expect(error.message).toContain("npm install @nats-io/transport-node @nats-io/jetstream");
  },
);

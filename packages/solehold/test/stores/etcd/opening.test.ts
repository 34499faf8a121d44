/** Opening with something wrong: one line that says what to do, at once, and never a password. */

import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect as connectLeases } from "../../../src/client/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { type EtcdStoreOptions, openEtcdStore } from "../../../src/stores/etcd/index.ts";
import { engineRecord, startEtcd } from "../../engines/index.ts";
import { create, recordOf, rejection, until, writeOf } from "../records.ts";
import {
  type Certificates,
  certificates,
  freePort,
  type Guarded,
  gateway,
  newPrefix,
  nonceIn,
  startCertified,
  startGuarded,
  storeUrl,
  tlsInFront,
} from "./support.ts";

const { urls, url } = engineRecord("etcd");
const prefix = newPrefix();
const listeners: Server[] = [];
let guarded: Guarded;
let tls: Certificates;

beforeAll(async () => {
  [guarded, tls] = await Promise.all([startGuarded(prefix), certificates()]);
});

afterAll(async () => {
  for (const listener of listeners) listener.close();
  await guarded?.stop();
  tls?.remove();
});

async function listening(listener: Server): Promise<number> {
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return (listener.address() as AddressInfo).port;
}

async function failure(options: EtcdStoreOptions) {
  const error = await rejection(openEtcdStore({ timeoutMs: 2_000, ...options }));
  expect(error).toMatchObject({ name: "StoreError", outcome: "not-applied" });
  expect(error.message).not.toMatch(/\n|s3cret|wr0ng/);
  return error;
}

const as = (user: string): string => `etcd://${user}@${new URL(guarded.url).host}/${prefix}`;

describe("a URL", () => {
  it("with a port where nothing listens is unreachable", async () => {
    const error = await failure({ url: `etcd://127.0.0.1:${await freePort()}` });
    expect(error.kind).toBe("unreachable");
    expect(error.message).toContain("start etcd or correct the URL");
  });

  it("with an unknown host is unreachable", async () => {
    const error = await failure({ url: "etcd://no-such-host.invalid" });
    expect(error.kind).toBe("unreachable");
    expect(error.message).toContain("no-such-host.invalid");
  });

  it("of which one member is down opens with the others", async () => {
    const members = [`127.0.0.1:${await freePort()}`, new URL(url).host];
    const store = await openEtcdStore({ url: `etcd://${members.join(",")}/${prefix}` });
    await create(store, recordOf("one-down"));
    await store.close();
  });

  it("of something that is not etcd is a config error", async () => {
    const port = await listening(createHttpServer((_, response) => response.end("hello")));
    const error = await failure({ url: `etcd://127.0.0.1:${port}` });
    expect(error.kind).toBe("config");
    expect(error.message).toContain("etcd's API 3");
  });

  it("of something that never answers fails within the timeout", async () => {
    const port = await listening(createServer((socket) => void socket.on("error", () => undefined)));
    const error = await failure({ url: `etcd://127.0.0.1:${port}?timeoutMs=300`, timeoutMs: 300 });
    expect(error.kind).toBe("timeout");
  });

  it("is what connect() takes, too", async () => {
    const leases = await connectLeases(storeUrl(urls, prefix));
    const lease = await leases.acquire("by-url", { ttl: "30s" });
    await lease.release();
    await leases.close();
  });

  it.each([
    ["nonsense", "must look like etcd://"],
    ["http://127.0.0.1", "must look like etcd://"],
    ["etcd://", "must name hosts"],
    ["etcd://a:1,,b:2", "must name hosts"],
    ["etcd://[::zz]:1", "must name hosts"],
    ["etcd://user:s3cret@127.0.0.1:99999", "ports from 1 to 65535"],
    ["etcd://user:s3cret@host name:2379", "must name hosts"],
    ["etcd://user:s3cret%@127.0.0.1", "password percent-encoded"],
    ["etcd://user:s3cret@wr0ng@127.0.0.1", "must"],
    ["etcd://127.0.0.1/with%20space", "prefix must have"],
    ["etcd://127.0.0.1/x?ttl=1", "timeoutMs, memberTimeoutMs, ca, cert, key"],
    ["etcd://127.0.0.1/x?timeoutMs=soon", "timeoutMs must be a whole number"],
    ["etcd://127.0.0.1/x?ca=/etc/hosts", "etcds:"],
    ["etcds://127.0.0.1/x?ca=/no/such/file", "ca must be the path"],
    ["etcds://127.0.0.1/x?cert=/etc/hosts", "cert and key, or neither"],
  ])("like %s is a config error that says how it should look", async (wrong, rule) => {
    const error = await rejection(openEtcdStore({ url: wrong }));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toContain(rule);
    expect(error.message).not.toMatch(/\n|s3cret|wr0ng/);
  });

  it("with an option that is no number is refused by name", async () => {
    expect((await failure({ url: storeUrl(urls, prefix), timeoutMs: 0 })).message).toContain("timeoutMs");
    const wrong = { url: storeUrl(urls, prefix), memberTimeoutMs: Number.NaN };
    expect((await failure(wrong)).message).toContain("memberTimeoutMs");
  });
});

describe("TLS", () => {
  it("is spoken where the URL says etcds:, with the certificate authority that it names", async () => {
    const port = await listening(tlsInFront(url, tls, "anybody"));
    const store = await openEtcdStore({ url: `etcds://localhost:${port}/${prefix}?ca=${tls.files.ca}` });
    await create(store, recordOf("through-tls"));
    await store.close();
    const untrusted = await failure({ url: `etcds://localhost:${port}/${prefix}` });
    expect(untrusted.kind).toBe("config");
    expect(untrusted.message).toContain("?ca=file");
    const plain = await failure({ url: `etcd://localhost:${port}/${prefix}` });
    expect(plain.message).toMatch(/etcds:|connection was lost/);
  });

  it("with a client certificate opens where one is wanted, and nowhere without", async () => {
    const { ca, clientCert, clientKey } = tls.files;
    const port = await listening(tlsInFront(url, tls, "certified"));
    const at = `etcds://127.0.0.1:${port}/${prefix}?ca=${ca}`;
    const store = await openEtcdStore({ url: `${at}&cert=${clientCert}&key=${clientKey}` });
    await create(store, recordOf("certified"));
    await store.close();
    expect((await failure({ url: at })).kind).toMatch(/^(config|unreachable)$/);
  });

  it("makes the name in a client certificate the user, without a password", async () => {
    const { ca, clientCert, clientKey } = tls.files;
    const certified = await startCertified(prefix, tls);
    const files = `ca=${ca}&cert=${clientCert}&key=${clientKey}`;
    const store = await openEtcdStore({ url: `etcds://${certified.host}/${prefix}?${files}` });
    await create(store, recordOf("by-certificate"));
    await store.close();
    const elsewhere = await failure({ url: `etcds://${certified.host}/elsewhere?${files}` });
    expect(elsewhere.kind).toBe("auth");
    await certified.stop();
  });

  it("with files that are no certificates is a config error that names them", async () => {
    const wrong = `etcds://127.0.0.1/x?cert=${import.meta.filename}&key=${import.meta.filename}`;
    const error = await failure({ url: wrong });
    expect(error.kind).toBe("config");
    expect(error.message).toContain("must be PEM files that belong together");
  });

  it("to a member without it is a config error that says so", async () => {
    const error = await failure({ url: storeUrl([url], prefix).replace("etcd:", "etcds:") });
    // A member that resets the connection before its answer was read leaves nothing to tell it by.
    if (error.message.includes("ECONNRESET")) expect(error.kind).toBe("unreachable");
    else {
      expect(error.kind).toBe("config");
      expect(error.message).toContain("use etcd: instead of etcds:");
    }
  });
});

describe("a cluster that asks for passwords", () => {
  it("refuses a wrong one, and none, with an auth error", async () => {
    expect((await failure({ url: as("keeper:wr0ng") })).message).toContain("user name or password is wrong");
    expect((await failure({ url: as("keeper:wr0ng") })).kind).toBe("auth");
    const nobody = await failure({ url: storeUrl([guarded.url], prefix) });
    expect(nobody.kind).toBe("auth");
    expect(nobody.message).toContain("etcd://user:password@host");
  });

  it("serves its user, watches included, and again after it forgot the login", async () => {
    const store = await openEtcdStore({ url: as("keeper:s3cret") });
    const version = await create(store, recordOf("guarded"));
    const events: StoreEvent[] = [];
    await store.watch({ tenant: null, prefix: "" }, (event) => events.push(event));
    await guarded.restart();
    const next = recordOf("guarded", { generation: 2n });
    expect((await store.apply([writeOf(next, version)])).results[0]!.kind).toBe("applied");
    const first = await until("the change is announced", async () => events[0] ?? null);
    expect(nonceIn(first)).toBe(next.nonce);
    await store.close();
  });

  it("lets a user who may only read do nothing else, alone or in a batch", async () => {
    const store = await openEtcdStore({ url: as("reader:s3cret") });
    const writes = ["denied/1", "denied/2"].map((name) => writeOf(recordOf(name)));
    for (const batch of [writes.slice(0, 1), writes]) {
      const error = await rejection(store.apply(batch));
      expect(error).toMatchObject({ kind: "auth", outcome: "not-applied" });
      expect(error.message).toContain("readwrite on the prefix");
    }
    const { records } = await store.read(writes.map(({ key }) => key));
    expect(records.map(({ kind }) => kind)).toEqual(["absent", "absent"]);
    await store.close();
    const elsewhere = as("reader:s3cret").replace(prefix, newPrefix());
    expect((await failure({ url: elsewhere })).kind).toBe("auth");
  });

  it("is not needed: a name and password do no harm where nobody asks for them", async () => {
    const store = await openEtcdStore({ url: storeUrl(urls, prefix).replace("//", "//someone:s3cret@") });
    await create(store, recordOf("unasked"));
    await store.close();
  });
});

it("a cluster that has no space left is full, for a batch as for a lone write, and reads go on", async () => {
  const engine = await startEtcd({ members: 1 });
  const store = await openEtcdStore({ url: storeUrl([engine.url], prefix) });
  const record = recordOf("before");
  await create(store, record);
  const { header } = (await gateway(engine.url, "maintenance/status", {})) as {
    header: { member_id: string };
  };
  await gateway(engine.url, "maintenance/alarm", {
    action: "ACTIVATE",
    memberID: header.member_id,
    alarm: "NOSPACE",
  });
  const writes = ["full/1", "full/2"].map((name) => writeOf(recordOf(name)));
  for (const batch of [writes.slice(0, 1), writes]) {
    const error = await rejection(store.apply(batch));
    expect(error).toMatchObject({ kind: "full", outcome: "not-applied" });
    expect(error.message).toContain("--quota-backend-bytes");
  }
  expect((await store.read([record.key])).records[0]!.kind).toBe("found");
  await store.close();
  await engine.stop();
});

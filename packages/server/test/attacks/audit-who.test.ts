/** After an abuse somebody can be named: the audit has the API key's id, the address, every refusal and every key. */
import { readFile, writeFile } from "node:fs/promises";
import type { AuditEntry } from "solehold/internal";
import { realEnv } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { ALL, ATTEMPTS, bearer, keyedServer } from "../support/keys.ts";
import { type TestServer, testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

const idOf = (key = ""): string => key.split("_")[1] ?? "";
const secretOf = (key = ""): string => key.split("_").slice(2).join("_");

async function entries({ server }: TestServer, query: object = {}): Promise<readonly AuditEntry[]> {
  return await server.service.audit.query({ limit: 1_000, ...query });
}

const grant = { name: "job", holder: "anybody", token: "job-token" };
const LOOPBACK = "127.0.0.1";

describe("an entry of the audit", () => {
  it("names the API key by its id and the address, over HTTP and the stream, and has no secret", async () => {
    const server = await keyedServer([{}, {}]);
    const [first, second] = server.keys;
    await server.lease("acquire", grant, bearer(first));
    const stream = await TestStream.open(server.url, bearer(second));
    await stream.ask({ op: "revoke", name: "job" });
    const caller = (key?: string) => ({ caller: idOf(key), address: LOOPBACK });
    expect(await entries(server, { key: "job" })).toMatchObject([
      { action: "grant", ...caller(first) },
      { action: "revoke", ...caller(second) },
    ]);
    expect(await entries(server, { caller: idOf(second), tenant: "default" })).toHaveLength(1);
    const text = JSON.stringify(await entries(server));
    for (const key of server.keys) expect(text).not.toContain(secretOf(key));
  });

  it("names whoever asks what would be decided", async () => {
    const server = await keyedServer([{}]);
    const [key] = server.keys;
    await server.post("/v1/leases/explain", { op: "acquire", ...grant }, bearer(key));
    expect(await entries(server, { key: "job" })).toMatchObject([{ caller: idOf(key), address: LOOPBACK }]);
  });

  it("names the waiter and not whoever released to it", async () => {
    const server = await keyedServer([{}, {}]);
    const [first, second] = server.keys;
    await server.lease("acquire", grant, bearer(first));
    const waiting = server.lease("acquire", { name: "job", holder: "w", waitMs: 60_000 }, bearer(second));
    await until("it waits", () => server.server.queue.size === 1);
    await server.lease("release", grant, bearer(first));
    expect((await waiting).status).toBe(200);
    const grants = (await entries(server, { action: "grant" })).filter(({ allowed }) => allowed);
    expect(grants.map(({ caller }) => caller)).toEqual([idOf(first), idOf(second)]);
  });

  it("says local where no keys are needed", async () => {
    const server = await testServer();
    await server.lease("acquire", grant);
    expect(await entries(server, { key: "job" })).toMatchObject([{ caller: "local", address: LOOPBACK }]);
  });

  it.each([
    ["no", "10.0.0.1", LOOPBACK],
    ["yes", "6.6.6.6, 10.0.0.1", "10.0.0.1"],
    ["yes", "nonsense", LOOPBACK],
  ])(
    "with behindProxy %s and X-Forwarded-For %j has the address %s",
    async (behindProxy, forwarded, address) => {
      const server = await keyedServer([{}], { behindProxy });
      await server.lease("acquire", grant, { ...bearer(server.keys[0]), "x-forwarded-for": forwarded });
      expect((await entries(server, { key: "job" }))[0]?.address).toBe(address);
    },
  );

  it("can be found by its caller through the API", async () => {
    const server = await keyedServer([{}]);
    const [key] = server.keys;
    await server.lease("acquire", grant, bearer(key));
    const { body } = await server.get(`/v1/audit?caller=${idOf(key)}`, bearer(key));
    expect(body.entries).toMatchObject([{ action: "grant", caller: idOf(key), address: LOOPBACK }]);
    expect((await server.get("/v1/audit?caller=nobody", bearer(key))).body.entries).toEqual([]);
  });
});

describe("a refusal by scope", () => {
  it.each(ATTEMPTS)("is an entry: $title", async ({ action, run }) => {
    const server = await keyedServer([{ tenants: ["mine"] }]);
    await run(server, { tenant: "theirs", name: "precious" }, bearer(server.keys[0]));
    expect(await entries(server, { tenant: "theirs" })).toMatchObject([
      {
        ...{ action: action === "acquire" ? "grant" : action, allowed: false, reason: "FORBIDDEN" },
        ...{ key: "precious", caller: idOf(server.keys[0]), address: LOOPBACK, outcome: "none" },
      },
    ]);
  });

  it("is an entry for watches, and on the stream for reads and watches", async () => {
    const server = await keyedServer([{ tenants: ["mine"] }]);
    const headers = bearer(server.keys[0]);
    expect((await server.get("/v1/watch?tenant=theirs&prefix=a", headers)).status).toBe(403);
    const stream = await TestStream.open(server.url, headers);
    const asked = ["watch", "list"].map((op) => ({ op, tenant: "theirs", prefix: "b" }));
    expect((await stream.ask(...asked)).map(({ status }) => status)).toEqual([403, 403]);
    const found = await entries(server, { tenant: "theirs" });
    expect(found.map(({ action, key }) => `${action} ${key}`).sort()).toEqual(["read a", "read b", "read b"]);
  });

  it("is not answered before its entry is safe", async () => {
    const server = await keyedServer([{ tenants: ["mine"] }]);
    Object.assign(server.server.service.audit, { append: () => Promise.reject(new Error("disk full")) });
    for (const { run } of ATTEMPTS.slice(0, 1).concat(ATTEMPTS.filter(({ action }) => action === "read"))) {
      const { status } = await run(server, { tenant: "theirs", name: "x" }, bearer(server.keys[0]));
      expect(status).toBe(503);
    }
  });
});

describe("a refusal by authentication", () => {
  const refusals = (server: TestServer) => entries(server, { action: "authenticate" });

  it("is an entry with the id that was claimed, and in the log, for HTTP and the stream", async () => {
    const server = await keyedServer([{}]);
    const [key = ""] = server.keys;
    const wrong = `shk_${idOf(key)}_${"A".repeat(43)}`;
    await server.get("/v1/leases", bearer(wrong));
    await TestStream.open(server.url).catch(() => undefined);
    const base = { tenant: "solehold", allowed: false, reason: "UNAUTHENTICATED", address: LOOPBACK };
    await until("both are there", async () => (await refusals(server)).length === 2);
    const [claimed, anonymous] = await refusals(server);
    expect(claimed).toMatchObject({ ...base, detail: { claimedId: idOf(key) } });
    expect(anonymous).toMatchObject(base);
    expect([claimed?.caller, anonymous?.caller]).toEqual([undefined, undefined]);
    expect(server.logged.join("")).toContain("a caller was not let in");
    expect(JSON.stringify(await entries(server)) + server.logged.join("")).not.toContain("A".repeat(43));
  });

  it("from a page of another origin is an entry", async () => {
    const server = await testServer();
    await server.get("/v1/leases", { origin: "https://evil.example" });
    expect(await refusals(server)).toMatchObject([{ reason: "FORBIDDEN", tenant: "solehold" }]);
  });

  it("does not fill the disk: of many a few are entries, and one says how many are not", async () => {
    const server = await keyedServer([{}]);
    for (let round = 0; round < 4; round += 1)
      await Promise.all(Array.from({ length: 50 }, () => server.get("/v1/leases")));
    const found = async (): Promise<number> => (await refusals(server)).length;
    expect(await found()).toBeLessThan(100);
    const counted = async (): Promise<number> => {
      const omitted = (await refusals(server)).map(({ detail }) => Number(detail?.omitted ?? 0));
      return omitted.reduce((sum, each) => sum + each, 0) + (await found());
    };
    let sent = 200;
    await until("all are counted", async () => {
      await server.get("/v1/leases");
      sent += 1;
      return (await counted()) === sent;
    });
  });
});

describe("API keys in the audit", () => {
  const changes = async (server: TestServer) =>
    (await entries(server, { tenant: "solehold" })).filter(({ action }) => action.startsWith("key-"));

  it("are entries when they are known, added, changed and revoked, with their rights", async () => {
    const server = await keyedServer([{ name: "first", tenants: ["a", "b"], actions: ["read"] }]);
    const [key] = server.keys;
    await until("the first is there", async () => (await changes(server)).length === 1);
    expect(await changes(server)).toMatchObject([
      {
        action: "key-known",
        key: `api-keys/${idOf(key)}`,
        detail: { name: "first", tenants: "a b", actions: "read" },
      },
    ]);
    const { stored } = await server.file.add({ ...ALL, expiresAt: "2999-01-01T00:00:00.000Z" });
    await until("the second is there", async () => (await changes(server)).length === 2);
    const text = await readFile(server.file.path, "utf8");
    await writeFile(server.file.path, text.replace('"read"\n', '"renew"\n'));
    await until("the change is there", async () => (await changes(server)).length === 3);
    await server.file.revoke(stored.id);
    await until("the end is there", async () => (await changes(server)).length === 4);
    expect((await changes(server)).map(({ action, key: about }) => `${action} ${about}`)).toEqual([
      `key-known api-keys/${idOf(key)}`,
      `key-add api-keys/${stored.id}`,
      `key-change api-keys/${idOf(key)}`,
      `key-revoke api-keys/${stored.id}`,
    ]);
    expect((await changes(server))[1]?.detail?.expiresAt).toBe("2999-01-01T00:00:00.000Z");
    expect(JSON.stringify(await changes(server))).not.toContain(stored.hash);
  });

  it("are an entry when they expire", async () => {
    const server = await keyedServer([{}]);
    const expiresAt = new Date(realEnv.wallMs() + 1_500).toISOString();
    const { key, stored } = await server.file.add({ ...ALL, expiresAt });
    await until("it is valid", async () => (await server.get("/v1/leases", bearer(key))).status === 200);
    await until("it is refused", async () => (await server.get("/v1/leases", bearer(key))).status === 401);
    await until("it is an entry", async () =>
      (await changes(server)).some((each) => each.action === "key-expire" && each.key.endsWith(stored.id)),
    );
  });
});

describe("a server's start and stop", () => {
  it("are entries, with the fingerprint of the policy", async () => {
    const server = await testServer();
    const own = async (): Promise<readonly AuditEntry[]> => await entries(server, { key: "server" });
    expect(await own()).toMatchObject([{ action: "start", tenant: "solehold", detail: { policy: "none" } }]);
    const { audit } = server.server.service;
    await server.server.close();
    expect((await audit.query({ key: "server" })).map(({ action }) => action)).toEqual(["start", "stop"]);
  });
});

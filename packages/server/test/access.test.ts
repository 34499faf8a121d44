import { readFile, stat, writeFile } from "node:fs/promises";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import {
  ACTIONS,
  type Action,
  ConfigError,
  KeyFile,
  type NewKey,
  resolveConfig,
  startServer,
} from "@solehold/server";
import { realEnv } from "solehold";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { selfSignedCertificate } from "./support/certificate.ts";
import { type Answer, type TestServer, tempFolder, testServer, until } from "./support/server.ts";

const ALL: NewKey = { name: "all", tenants: ["*"], prefixes: [""], actions: ACTIONS };

async function keyedServer(
  keys: readonly Partial<NewKey>[],
  flags: Record<string, string> = {},
): Promise<TestServer & { readonly keys: readonly string[]; readonly file: KeyFile }> {
  const dataDir = await tempFolder();
  const file = new KeyFile(dataDir, realEnv);
  const made: string[] = [];
  for (const key of keys) made.push((await file.add({ ...ALL, ...key })).key);
  return { ...(await testServer(flags, { dataDir })), keys: made, file };
}

const bearer = (key: string | undefined): Record<string, string> => ({ authorization: `Bearer ${key}` });

/** One request for each route that touches a lease, a tenant or the whole server. */
interface Attempt {
  readonly title: string;
  readonly action: Action;
  run(
    server: TestServer,
    where: { tenant: string; name: string },
    headers: Record<string, string>,
  ): Promise<Answer>;
}

const owner = { holder: "me", token: "secret-token" };
const approval = {
  holder: "h",
  purpose: "p",
  tier: "Risky",
  action: "revoke",
  ttlMs: 0,
  nonce: "n".repeat(16),
};

const command = (action: Action, more: object): Attempt => ({
  title: `POST /v1/leases/${action}`,
  action,
  run: (server, where, headers) => server.lease(action, { ...where, ...more }, headers),
});

const ATTEMPTS: readonly Attempt[] = [
  command("acquire", owner),
  command("renew", owner),
  command("use", { ...owner, purpose: "Operation" }),
  command("resume", owner),
  command("break", { periodMs: 60_000 }),
  command("handoff", { ...owner, successor: "you", withinMs: 1 }),
  command("release", owner),
  command("revoke", {}),
  {
    title: "POST /v1/leases/renew with many",
    action: "renew",
    run: async (server, where, headers) => {
      const { body, headers: got } = await server.lease(
        "renew",
        { leases: [{ ...where, ...owner }] },
        headers,
      );
      const [only] = body.results;
      const problem = only?.body as Answer["body"];
      return { status: Number(only?.status), body: problem, headers: got, text: JSON.stringify(problem) };
    },
  },
  {
    title: "GET /v1/lease",
    action: "read",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/lease?tenant=${tenant}&name=${name}`, headers),
  },
  {
    title: "GET /v1/leases",
    action: "read",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/leases?tenant=${tenant}&prefix=${name}`, headers),
  },
  {
    title: "GET /v1/queue",
    action: "read",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/queue?tenant=${tenant}&name=${name}`, headers),
  },
  {
    title: "GET /v1/audit",
    action: "audit",
    run: (server, { tenant, name }, headers) =>
      server.get(`/v1/audit?tenant=${tenant}&name=${name}`, headers),
  },
  {
    title: "POST /v1/quorum/verify",
    action: "coordinate",
    run: (server, { tenant, name }, headers) => {
      const signers = [
        { signerId: "s", keys: [{ publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] },
      ];
      const quorum = { signers, thresholds: { standard: 1, risky: 1, dangerous: 1 } };
      const request = { ...approval, tenant, key: name };
      return server.post("/v1/quorum/verify", { leaseId: "l", request, approvals: [], quorum }, headers);
    },
  },
];

/** The reads of a watch end with the answer's head. */
async function watchStatus(
  server: TestServer,
  query: string,
  headers: Record<string, string>,
): Promise<number> {
  const abort = new AbortController();
  const response = await fetch(`${server.url}/v1/watch?${query}`, { headers, signal: abort.signal });
  abort.abort();
  return response.status;
}

describe("API keys", () => {
  it("are needed for everything but health, readiness, the page and the description", async () => {
    const server = await keyedServer([{}]);
    for (const path of ["/healthz", "/readyz", "/", "/openapi.json"])
      expect((await server.get(path)).status).toBe(200);
    for (const path of [
      "/v1/leases",
      "/v1/lease?name=a",
      "/v1/audit",
      "/v1/audit/verify",
      "/metrics",
      "/v1/watch",
      "/nowhere",
    ]) {
      const answer = await server.get(path);
      expect([path, answer.status, answer.body.code]).toEqual([path, 401, "LS_UNAUTHENTICATED"]);
      expect(answer.headers.get("www-authenticate")).toContain("Bearer");
    }
    for (const { run } of ATTEMPTS.filter(({ title }) => !title.includes("many"))) {
      expect((await run(server, { tenant: "default", name: "a" }, {})).status).toBe(401);
    }
  });

  it("let in with the right secret only", async () => {
    const { get, keys } = await keyedServer([{}]);
    const [key = ""] = keys;
    expect((await get("/v1/leases", bearer(key))).status).toBe(200);
    expect((await get("/v1/leases", { authorization: `bearer ${key}` })).status).toBe(200);
    const flipped = key.slice(0, -1) + (key.endsWith("A") ? "B" : "A");
    const bad = [
      flipped,
      key.slice(0, -1),
      `${key}A`,
      key.toUpperCase(),
      "",
      "shk_000000000000_",
      `shk_000000000000_${"A".repeat(43)}`,
    ];
    for (const wrong of bad) expect((await get("/v1/leases", bearer(wrong))).status).toBe(401);
    expect((await get("/v1/leases", { authorization: key })).status).toBe(401);
    expect((await get("/v1/leases", { authorization: `Basic ${key}` })).status).toBe(401);
    expect((await get(`/v1/leases?authorization=${key}`)).status).toBe(401);
  });

  it("are on disk only as hashes, readable by their owner alone", async () => {
    const { keys, dataDir } = await keyedServer([{}, {}]);
    const path = join(dataDir, "api-keys.json");
    const text = await readFile(path, "utf8");
    for (const key of keys) expect(text).not.toContain(key.split("_").slice(2).join("_"));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("work at once when added and stop at once when revoked, in a running server", async () => {
    const { get, keys, file } = await keyedServer([{}]);
    const { key, stored } = await file.add(ALL);
    await until("the new key is known", async () => (await get("/v1/leases", bearer(key))).status === 200);
    expect(await file.revoke(stored.id)).toBe(true);
    expect(await file.revoke(stored.id)).toBe(false);
    await until(
      "the revoked key is refused",
      async () => (await get("/v1/leases", bearer(key))).status === 401,
    );
    expect((await get("/v1/leases", bearer(keys[0]))).status).toBe(200);
  });

  it("once needed stay needed: neither revoking the last nor losing the file opens the door", async () => {
    const server = await keyedServer([{}]);
    const [stored] = await server.file.read();
    await server.file.revoke(stored?.id ?? "");
    await until(
      "the key is refused",
      async () => (await server.get("/v1/leases", bearer(server.keys[0]))).status === 401,
    );
    expect((await server.get("/v1/leases")).status).toBe(401);
    await writeFile(server.file.path, "{ not json");
    await until("the failure is logged", () =>
      server.logged.some((line) => line.includes("could not be read again")),
    );
    expect((await server.get("/v1/leases")).status).toBe(401);
    const restarted = await testServer({}, { dataDir: server.dataDir }).catch((error: Error) => error);
    expect(restarted).toBeInstanceOf(Error);
  });

  it("can be made by two processes at once without losing one", async () => {
    const dataDir = await tempFolder();
    const files = [new KeyFile(dataDir, realEnv), new KeyFile(dataDir, realEnv)];
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => files[index % 2]?.add({ ...ALL, name: `k${index}` })),
    );
    expect((await files[0]?.read())?.length).toBe(10);
  });

  it("limit the commands per second, each key for itself, with 429 and when to come back", async () => {
    const { get, keys, lease } = await keyedServer([{}, {}], { requestsPerSecond: "5" });
    const answers = await Promise.all(Array.from({ length: 30 }, () => get("/v1/leases", bearer(keys[0]))));
    const limited = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(10);
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]?.headers.get("retry-after")).toBe("1");
    expect(limited[0]?.body).toMatchObject({ reason: "TOO_MANY_REQUESTS", code: "LS_TOO_MANY" });
    expect((await get("/v1/leases", bearer(keys[1]))).status).toBe(200);
    const leases = Array.from({ length: 100 }, () => ({ name: "x", ...owner }));
    await lease("renew", { leases }, bearer(keys[1]));
    expect((await get("/v1/leases", bearer(keys[1]))).status).toBe(429);
  });
});

describe("scopes", () => {
  it.each(ATTEMPTS)("$title: allowed with its own action, forbidden without it", async ({ action, run }) => {
    const others = ACTIONS.filter((each) => each !== action);
    const server = await keyedServer([{ actions: [action] }, { actions: others }]);
    const where = { tenant: "default", name: "a" };
    expect((await run(server, where, bearer(server.keys[0]))).status).not.toBe(403);
    const refused = await run(server, where, bearer(server.keys[1]));
    expect([refused.status, refused.body.code]).toEqual([403, "LS_FORBIDDEN"]);
  });

  it.each(ATTEMPTS)(
    "$title: another tenant's leases cannot be touched, seen or told from nothing",
    async ({ run }) => {
      const server = await keyedServer([{}, { tenants: ["mine"] }]);
      const [admin, mine] = server.keys.map(bearer);
      const theirs = { tenant: "theirs", name: "precious", holder: "secret-holder", token: "secret-token" };
      await server.lease("acquire", { ...theirs, note: "secret-note", ttlMs: 600_000 }, admin);
      const before = (await server.get("/v1/lease?tenant=theirs&name=precious", admin)).body;
      const existing = await run(server, { tenant: "theirs", name: "precious" }, mine ?? {});
      const missing = await run(server, { tenant: "theirs", name: "nothing" }, mine ?? {});
      expect([existing.status, missing.status]).toEqual([403, 403]);
      const withoutTrace = ({ body }: Answer): object => ({ ...body, traceId: "" });
      expect(withoutTrace(existing)).toEqual(withoutTrace(missing));
      expect(existing.text).not.toMatch(/secret|precious/);
      const after = (await server.get("/v1/lease?tenant=theirs&name=precious", admin)).body;
      expect({ ...after, remainingMs: 0 }).toEqual({ ...before, remainingMs: 0 });
    },
  );

  it.each(ATTEMPTS)("$title: names outside the key's prefixes are forbidden", async ({ run }) => {
    const server = await keyedServer([{ prefixes: ["team-a/", "shared/"] }]);
    const headers = bearer(server.keys[0]);
    expect((await run(server, { tenant: "default", name: "team-b/x" }, headers)).status).toBe(403);
    expect((await run(server, { tenant: "default", name: "team-a" }, headers)).status).toBe(403);
    expect((await run(server, { tenant: "default", name: "team-a/x" }, headers)).status).not.toBe(403);
    expect((await run(server, { tenant: "default", name: "shared/x" }, headers)).status).not.toBe(403);
  });

  it("hold for listing, watching and the audit without a prefix too", async () => {
    const server = await keyedServer([{ prefixes: ["team-a/"] }, { tenants: ["mine"] }]);
    const [prefixed, mine] = server.keys.map(bearer) as [Record<string, string>, Record<string, string>];
    for (const path of ["/v1/leases", "/v1/audit", "/v1/audit/verify", "/metrics"]) {
      expect([path, (await server.get(path, prefixed)).status]).toEqual([path, 403]);
    }
    for (const path of [
      "/v1/audit/verify",
      "/metrics",
      "/v1/leases?tenant=default",
      "/v1/audit?tenant=default",
      "/v1/audit?tenant=*",
    ]) {
      expect([path, (await server.get(path, mine)).status]).toEqual([path, 403]);
    }
    expect(await watchStatus(server, "", prefixed)).toBe(403);
    expect(await watchStatus(server, "prefix=team-a/", prefixed)).toBe(200);
    expect(await watchStatus(server, "tenant=theirs", mine)).toBe(403);
    expect(await watchStatus(server, "tenant=mine", mine)).toBe(200);
  });

  it("give a key with one tenant that tenant, and ask one with several which", async () => {
    const server = await keyedServer([{ tenants: ["mine"] }, { tenants: ["a", "b"] }]);
    const [one, two] = server.keys.map(bearer);
    expect((await server.lease("acquire", { name: "x", holder: "h" }, one)).body.lease.tenant).toBe("mine");
    const unclear = await server.lease("acquire", { name: "x", holder: "h" }, two);
    expect([unclear.status, unclear.body.field]).toEqual([400, "tenant"]);
    expect((await server.lease("acquire", { tenant: "b", name: "x", holder: "h" }, two)).status).toBe(200);
  });

  it("bind idempotency keys to the API key that used them", async () => {
    const server = await keyedServer([{}, {}]);
    const request = { name: "x", holder: "h", idempotencyKey: "once" };
    const first = await server.lease("acquire", request, bearer(server.keys[0]));
    const stolen = await server.lease("acquire", request, bearer(server.keys[1]));
    expect([first.status, stolen.status, stolen.body.reason]).toEqual([200, 400, "IDEMPOTENCY_KEY_REUSED"]);
    expect(stolen.text).not.toContain(first.body.token);
  });

  it("hold on the stream", async () => {
    const server = await keyedServer([{ tenants: ["mine"], actions: ["acquire", "read"] }]);
    const url = `${server.url.replace("http", "ws")}/v1/stream`;
    const refused = await new Promise<string>((resolve) => {
      new WebSocket(url).on("error", (error) => resolve(error.message));
    });
    expect(refused).toContain("401");
    const socket = new WebSocket(url, { headers: bearer(server.keys[0]) });
    await new Promise((resolve) => socket.once("open", resolve));
    const messages = [
      { id: 1, op: "acquire", name: "x", holder: "h" },
      { id: 2, op: "acquire", tenant: "theirs", name: "x", holder: "h" },
      { id: 3, op: "revoke", name: "x" },
      { id: 4, op: "watch", tenant: "theirs" },
      { id: 5, op: "list", tenant: "theirs" },
      { id: 6, op: "get", tenant: "theirs", name: "x" },
      { id: 7, op: "queue", tenant: "theirs", name: "x" },
    ];
    const statuses = new Map<number, number>();
    const all = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        for (const { id, status } of JSON.parse(String(data))) statuses.set(id, status);
        if (statuses.size === messages.length) resolve();
      });
    });
    socket.send(JSON.stringify(messages));
    await all;
    socket.close();
    expect([...statuses].sort(([a], [b]) => a - b).map(([, status]) => status)).toEqual([
      200, 403, 403, 403, 403, 403, 403,
    ]);
  });
});

describe("where a server may listen", () => {
  const start = async (flags: Record<string, string>, keys: "some" | "none"): Promise<string> => {
    const dataDir = await tempFolder();
    if (keys === "some") await new KeyFile(dataDir, realEnv).add(ALL);
    const config = resolveConfig({
      flags: { port: "0", store: "memory:", audit: "memory", dataDir, logLevel: "silent", ...flags },
    });
    try {
      const server = await startServer(config);
      await server.close();
      return "started";
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as Error).message;
    }
  };

  it("is loopback only without keys", async () => {
    expect(await start({ host: "127.0.0.1" }, "none")).toBe("started");
    expect(await start({ host: "localhost" }, "none")).toBe("started");
    expect(await start({ host: "0.0.0.0" }, "none")).toMatch(/no API keys.*solehold keys add/);
    expect(await start({ host: "::" }, "none")).toMatch(/no API keys/);
    expect(await start({ host: "0.0.0.0", behindProxy: "yes" }, "none")).toMatch(/no API keys/);
  });

  it("is anywhere with keys and TLS, or with keys behind a proxy", async () => {
    expect(await start({ host: "0.0.0.0" }, "some")).toMatch(/in the clear.*--tls-cert/);
    expect(await start({ host: "0.0.0.0", behindProxy: "yes" }, "some")).toBe("started");
    const { cert, key } = await selfSignedCertificate();
    expect(await start({ host: "0.0.0.0", tlsCert: cert, tlsKey: key }, "some")).toBe("started");
    expect(await start({ host: "0.0.0.0", tlsCert: cert }, "some")).toMatch(/belong together/);
    expect(await start({ tlsCert: "/nowhere", tlsKey: "/nowhere" }, "some")).toMatch(/cannot be read/);
  });
});

describe("TLS", () => {
  it("carries HTTP and the stream, for clients that trust the certificate", async () => {
    const { cert, key } = await selfSignedCertificate();
    const server = await keyedServer([{}], { host: "0.0.0.0", tlsCert: cert, tlsKey: key });
    const ca = await readFile(cert, "utf8");
    const { port } = new URL(server.url);
    expect(server.url).toMatch(/^https:/);
    const headers = bearer(server.keys[0]);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const call = httpsRequest(`https://localhost:${port}/v1/leases`, { ca, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on("error", reject);
      call.end();
    });
    expect(status).toBe(200);
    const socket = new WebSocket(`wss://localhost:${port}/v1/stream`, { ca, headers });
    const answer = await new Promise<string>((resolve, reject) => {
      socket.on("open", () => socket.send('{"id":1,"op":"ping"}'));
      socket.on("message", (data) => resolve(String(data)));
      socket.on("error", reject);
    });
    socket.terminate();
    expect(JSON.parse(answer)).toEqual([{ id: 1, status: 200, body: {} }]);
  });
});

/** API keys: what needs one, who is let in, how they lie on disk, come, go, and limit the rate of commands. */
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KeyFile } from "@solehold/server";
import { realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { ALL, ATTEMPTS, bearer, keyedServer, owner } from "./support/keys.ts";
import { tempFolder, testServer, until } from "./support/server.ts";

/** The folders and files, from `folder` down, with a mode that lets others in. */
async function othersCanReach(folder: string): Promise<readonly string[]> {
  const paths = [folder, ...(await readdir(folder, { recursive: true })).map((path) => join(folder, path))];
  const modes = await Promise.all(paths.map(async (path) => ({ path, mode: (await stat(path)).mode })));
  return modes.flatMap(({ path, mode }) => ((mode & 0o077) === 0 ? [] : [path]));
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

  it("are on disk only as hashes", async () => {
    const { keys, dataDir } = await keyedServer([{}, {}]);
    const text = await readFile(join(dataDir, "api-keys.json"), "utf8");
    for (const key of keys) expect(text).not.toContain(key.split("_").slice(2).join("_"));
  });

  it("lie, as all that a server makes, in folders and files that only their owner can read", async () => {
    const before = process.umask(0o022);
    onTestFinished(() => void process.umask(before));
    for (const first of ["keys", "server"]) {
      const dataDir = join(await tempFolder(), "made", "here");
      const file = new KeyFile(dataDir, realEnv);
      if (first === "keys") await file.add(ALL);
      const { server } = await testServer(
        { store: `embedded:${dataDir}/data`, audit: "before-reply" },
        { dataDir },
      );
      if (first === "server") await file.add(ALL);
      await server.close();
      const open = await othersCanReach(dirname(dataDir));
      expect([first, open]).toEqual([first, []]);
      expect(await readdir(dataDir)).toEqual(expect.arrayContaining(["api-keys.json", "audit", "data"]));
    }
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

  it("that are lost do not open a server that starts", async () => {
    const { server, file, dataDir } = await keyedServer([{}]);
    await server.close();
    await rm(file.path);
    await expect(testServer({}, { dataDir })).rejects.toThrow(/is gone, and there were API keys: restore it/);
    await rm(join(dataDir, "api-keys.lock"), { recursive: true });
    expect((await (await testServer({}, { dataDir })).get("/v1/leases")).status).toBe(200);
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

/** Replicas over one store decide alike: one with other rules does not start, and keys in the store are everybody's. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KeyFile, KeyStore } from "@solehold/server";
import { openStore } from "solehold";
import { generateSigningKey, realEnv } from "solehold/internal";
import { describe, expect, it, onTestFinished } from "vitest";
import { ALL, bearer } from "../support/keys.ts";
import { ServerProcess } from "../support/process.ts";
import { tempFolder, testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

async function policyFile(pattern: string): Promise<string> {
  const path = join(await tempFolder(), "policy.json");
  const { publicKey } = generateSigningKey();
  const signers = [{ signerId: "alice", keys: [{ publicKey }] }];
  const thresholds = { standard: 1, risky: 1, dangerous: 1 };
  await writeFile(path, JSON.stringify({ signers, thresholds, rules: [{ pattern, tier: "Standard" }] }));
  return path;
}

const sharedStore = async (): Promise<string> => `file:${await tempFolder()}`;

describe("a replica", () => {
  it("with other approval rules, quota or keys than one that is there does not start", async () => {
    const store = await sharedStore();
    const path = await policyFile("prod/*");
    const first = await testServer({ store, policyFile: path, nodeId: "first" });
    await until("it is there", async () => (await first.get("/v1/replicas")).body.replicas.length === 1);
    const keyed = await tempFolder();
    await new KeyFile(keyed, realEnv).add(ALL);
    const others: readonly [Record<string, string>, string?][] = [
      [{}],
      [{ policyFile: await policyFile("other/*") }],
      [{ policyFile: path, leasesPerTenant: "5" }],
      [{ policyFile: path }, keyed],
    ];
    const starts = await Promise.allSettled(
      others.map(([flags, dataDir]) =>
        testServer({ store, nodeId: "second", ...flags }, dataDir === undefined ? {} : { dataDir }),
      ),
    );
    for (const start of starts)
      expect(start).toMatchObject({
        reason: { message: expect.stringMatching(/replica first .* has other/) },
      });
    await testServer({ store, policyFile: path, nodeId: "third" });
  });

  it("that is not announced to clients counts as well", async () => {
    const store = await sharedStore();
    const hidden = await testServer({ store, behindProxy: "yes", nodeId: "hidden", leasesPerTenant: "7" });
    await until("it is there", async () => {
      const { executor } = hidden.server.service;
      return (await executor.list({ tenant: "solehold", prefix: "replicas/", limit: 9 })).leases.length === 1;
    });
    await expect(testServer({ store })).rejects.toThrow(/the replica hidden/);
  });

  it("that was killed is waited for, and then does not count", async () => {
    const store = await sharedStore();
    const first = await ServerProcess.start(await tempFolder(), "--store", store, "--audit", "memory");
    await first.kill();
    await testServer({ store, leasesPerTenant: "7" });
  });
});

describe("API keys in the store", () => {
  async function storedKeys(store: string): Promise<KeyStore> {
    const opened = await openStore(store);
    onTestFinished(async () => await opened.close());
    return new KeyStore(opened, realEnv);
  }

  it("are known to all replicas, and so is their end, also on open streams", async () => {
    const store = await sharedStore();
    const keys = await storedKeys(store);
    const { key, stored } = await keys.add({ ...ALL, name: "größe 🙂", prefixes: ["x".repeat(900)] });
    const all = await keys.add(ALL);
    const flags = { store, keys: "store" };
    const replicas = [await testServer(flags), await testServer(flags)];
    for (const replica of replicas) {
      expect((await replica.get("/v1/leases", bearer(all.key))).status).toBe(200);
      expect((await replica.get("/v1/leases", bearer(key))).status).toBe(403);
      expect((await replica.get("/v1/leases")).status).toBe(401);
    }
    const streams = await Promise.all(replicas.map(({ url }) => TestStream.open(url, bearer(key))));
    expect(await keys.revoke(stored.id)).toBe(true);
    expect(await keys.revoke(stored.id)).toBe(false);
    for (const stream of streams) await until("it is ended", () => stream.closed === 1008);
    for (const replica of replicas) expect((await replica.get("/v1/leases", bearer(key))).status).toBe(401);
  });

  it("are needed before the first one is there, and work as soon as it is", async () => {
    const store = await sharedStore();
    const server = await testServer({ store, keys: "store" });
    expect((await server.get("/v1/leases")).status).toBe(401);
    const { key } = await (await storedKeys(store)).add(ALL);
    await until("it works", async () => (await server.get("/v1/leases", bearer(key))).status === 200);
  });

  it("expire, cannot be written by callers, and have no secret in the store", async () => {
    const store = await sharedStore();
    const keys = await storedKeys(store);
    const expiresAt = new Date(realEnv.wallMs() + 2_000).toISOString();
    const short = await keys.add({ ...ALL, expiresAt });
    const { key } = await keys.add(ALL);
    const server = await testServer({ store, keys: "store" });
    await until("it ends", async () => (await server.get("/v1/leases", bearer(short.key))).status === 401);
    const body = { tenant: "solehold", name: "api-keys/000000000000", holder: "me" };
    expect((await server.lease("acquire", body, bearer(key))).status).toBe(403);
    const { text } = await server.get("/v1/leases?tenant=solehold", bearer(key));
    expect(text).toContain("api-keys/");
    expect(text + JSON.stringify(await keys.read())).not.toContain(key.split("_").slice(2).join("_"));
  });

  it("have rights that fit into a record, or are refused", async () => {
    const keys = await storedKeys(await sharedStore());
    await expect(keys.add({ ...ALL, prefixes: ["x".repeat(1_500)] })).rejects.toThrow(/make several keys/);
  });
});

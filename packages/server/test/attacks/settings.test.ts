/** A setting or a rule that is misspelt protects nobody, so it is refused; and a server without keys notices a proxy. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { resolveConfig, startServer } from "@solehold/server";
import { generateSigningKey } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { bearer, keyedServer } from "../support/keys.ts";
import { tempFolder, testServer } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

describe("an environment variable that is no setting", () => {
  it.each([
    ["SOLEHOLD_POLICYFILE", "did you mean SOLEHOLD_POLICY_FILE?"],
    ["SOLEHOLD_POLICY", "lists the settings"],
    ["SOLEHOLD_TLSCERT", "did you mean SOLEHOLD_TLS_CERT?"],
  ])("is refused: %s", (name, hint) => {
    expect(() => resolveConfig({ env: { [name]: "x" } })).toThrow(`${name} is no setting`);
    expect(() => resolveConfig({ env: { [name]: "x" } })).toThrow(hint);
  });

  it("is left alone where other parts read it, or Kubernetes made it, or it is none of ours", () => {
    const others = ["SOLEHOLD_API_KEY", "SOLEHOLD_URL", "SOLEHOLD_SERVICE_HOST", "SOLEHOLD_PORT_7077_TCP"];
    const env = Object.fromEntries([...others, "PATH", "SOLEHOLDX"].map((name) => [name, "x"]));
    expect(resolveConfig({ env }).policyFile).toBe("");
  });
});

describe("a policy file", () => {
  const { publicKey } = generateSigningKey();
  const signer = { signerId: "alice", keys: [{ publicKey }] };
  const rule = { pattern: "prod/*", tier: "Standard" };
  const thresholds = { standard: 1, risky: 1, dangerous: 1 };
  const good = { signers: [signer], thresholds, rules: [rule] };

  async function startWith(content: object): Promise<void> {
    const dataDir = await tempFolder();
    const policyFile = join(dataDir, "policy.json");
    await writeFile(policyFile, JSON.stringify(content));
    const flags = { port: "0", store: "memory:", audit: "memory", dataDir, policyFile, logLevel: "silent" };
    await (await startServer(resolveConfig({ flags }))).close();
  }

  it("that is spelt well is taken", async () => {
    await startWith(good);
  });

  it.each([
    ["policy.threshold", { ...good, threshold: thresholds }],
    ["rules[0].maxTtl", { ...good, rules: [{ ...rule, maxTtl: 1 }] }],
    ["rules[0].tenants", { ...good, rules: [{ ...rule, tenants: ["a"] }] }],
    ["signers[0].id", { ...good, signers: [{ ...signer, id: "alice" }] }],
    [
      "signers[0].keys[0].notAfter",
      { ...good, signers: [{ ...signer, keys: [{ publicKey, notAfter: 1 }] }] },
    ],
    ["thresholds.danger", { ...good, thresholds: { ...thresholds, danger: 3 } }],
  ])("with the unknown field %s is refused", async (field, content) => {
    await expect(startWith(content)).rejects.toThrow(`${field} is not known`);
  });
});

describe("a server without keys behind a proxy", () => {
  const headers = ["x-forwarded-for", "forwarded", "via", "x-real-ip"];

  it.each(headers)("refuses what came with %s, over HTTP and the stream", async (name) => {
    const server = await testServer();
    const { status, body } = await server.get("/v1/leases", { [name]: "203.0.113.9" });
    expect([status, body.detail]).toEqual([403, expect.stringMatching(/proxy.*solehold keys add/)]);
    await expect(TestStream.open(server.url, { [name]: "203.0.113.9" })).rejects.toThrow();
    expect((await server.get("/healthz", { [name]: "203.0.113.9" })).status).toBe(200);
  });

  it("serves it once there are keys", async () => {
    const server = await keyedServer([{}]);
    const sent = { ...bearer(server.keys[0]), "x-forwarded-for": "203.0.113.9" };
    expect((await server.get("/v1/leases", sent)).status).toBe(200);
  });
});

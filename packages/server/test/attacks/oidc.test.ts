/** Tokens of an OpenID Connect issuer as a way in: the right ones with the rights of their rule, and no others. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { connect } from "solehold";
import { describe, expect, it, onTestFinished } from "vitest";
import { AUDIENCE, type Issuer, startIssuer } from "../support/issuer.ts";
import { bearer } from "../support/keys.ts";
import { type TestServer, tempFolder, testServer, until } from "../support/server.ts";
import { TestStream } from "../support/stream.ts";

async function identities(content: object): Promise<string> {
  const path = join(await tempFolder(), "identities.json");
  await writeFile(path, JSON.stringify(content));
  return path;
}

async function trusting(issuer: Issuer, flags: Record<string, string> = {}): Promise<TestServer> {
  const tokens = [
    { claim: "groups", value: "ops", tenants: ["mine"], prefixes: ["app/"], actions: ["acquire", "read"] },
    { claim: "role", value: "auditor", tenants: ["*"], actions: ["audit"] },
  ];
  const oidc = { issuer: issuer.url, audience: AUDIENCE };
  return await testServer({ identities: await identities({ oidc, tokens }), ...flags });
}

const ask = async (server: TestServer, token: string, body = { name: "app/1", holder: "h" }) =>
  (await server.lease("acquire", { tenant: "mine", ...body }, bearer(token))).status;

describe("a token", () => {
  it("of the issuer lets in, with the rights of its rule and no more, and is named in the audit", async () => {
    const issuer = await startIssuer();
    const server = await trusting(issuer);
    const token = await issuer.token();
    expect(await ask(server, token)).toBe(200);
    expect(await ask(server, token, { name: "other/1", holder: "h" })).toBe(403);
    expect((await server.get("/v1/leases?tenant=theirs", bearer(token))).status).toBe(403);
    expect((await server.get("/v1/audit?tenant=mine", bearer(token))).status).toBe(403);
    const auditor = await issuer.token({ groups: [], role: "auditor", sub: "bob" });
    const { body, text } = await server.get("/v1/audit?tenant=mine&action=grant", bearer(auditor));
    expect(body.entries).toMatchObject([{ caller: "oidc:ann" }, { caller: "oidc:ann" }]);
    expect(text).not.toContain(token);
    expect(issuer.asked()).toBe(1);
    expect((await server.get("/v1/leases")).status).toBe(401);
  });

  it("that is not the issuer's, for others, over, unsigned or without a rule does not let in", async () => {
    const issuer = await startIssuer();
    const stranger = await startIssuer();
    const server = await trusting(issuer);
    const { privateKey } = await generateKeyPair("ES256");
    const good = await issuer.token();
    const [head = "", payload = "", signature = ""] = good.split(".");
    const claims = { iss: issuer.url, aud: AUDIENCE, sub: "ann", groups: ["ops"] };
    const secret = new TextEncoder().encode("x".repeat(32));
    const changed = Buffer.from(JSON.stringify({ ...claims, exp: 9e9 })).toString("base64url");
    const bad: readonly (readonly [string, string, number])[] = [
      ["another issuer's", await stranger.token(), 401],
      ["its name, another key", await issuer.token({}, { by: privateKey }), 401],
      ["another issuer's name", await issuer.token({ iss: stranger.url }), 401],
      ["another audience", await issuer.token({ aud: "elsewhere" }), 401],
      ["expired", await issuer.token({}, { expiresIn: "-1s" }), 401],
      ["without a subject", await issuer.token({ sub: undefined }), 401],
      ["unsigned", new UnsecuredJWT(claims).setExpirationTime("5m").encode(), 401],
      [
        "HS256",
        await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).setExpirationTime("5m").sign(secret),
        401,
      ],
      ["another payload", `${head}.${changed}.${signature}`, 401],
      ["no signature", `${head}.${payload}.`, 401],
      ["nonsense", "nonsense", 401],
      ["no rule", await issuer.token({ groups: ["guests"] }), 403],
    ];
    for (const [what, token, status] of bad) expect([what, await ask(server, token)]).toEqual([what, status]);
    expect(await ask(server, good)).toBe(200);
  });

  it("opens a stream, and ends it when it expires, with what waits there", async () => {
    const issuer = await startIssuer();
    const server = await trusting(issuer);
    const token = await issuer.token({}, { expiresIn: "2s" });
    const stream = await TestStream.open(server.url, bearer(token));
    await expect(TestStream.open(server.url, bearer(await (await startIssuer()).token()))).rejects.toThrow();
    const [answer] = await stream.ask({ op: "acquire", tenant: "mine", name: "app/1", holder: "h" });
    expect(answer.status).toBe(200);
    await until("it is ended", () => stream.closed === 1008);
    expect(await ask(server, token)).toBe(401);
  });

  it("is what the client sends as its API key", async () => {
    const issuer = await startIssuer();
    const server = await trusting(issuer);
    const leases = await connect(server.url, { apiKey: await issuer.token(), tenant: "mine" });
    onTestFinished(async () => await leases.close());
    expect((await leases.acquire("app/x", { ttl: "30s" })).state).toBe("held");
  });
});

describe("a file of identities", () => {
  it.each([
    [{ oidc: { issuer: "http://idp.example", audience: "a" } }, "must be https:// URLs"],
    [{ oidc: { issuer: "https://idp.example" } }, "audience"],
    [{ token: [] }, "token"],
    [{ tokens: [{ claim: "a", value: "b", tenants: ["*"], actions: ["aquire"] }] }, "actions"],
  ])("that is wrong is refused: %j", async (content, message) => {
    await expect(testServer({ identities: await identities(content) })).rejects.toThrow(message);
  });
});

/** A client sends its API key wherever it sends requests: it follows no announced address that is less safe. */
import { execFile } from "node:child_process";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { resolveConfig } from "@solehold/server";
import { connect, type Leases } from "solehold";
import { describe, expect, it, onTestFinished } from "vitest";
import { announcementOf } from "../../src/main/announcement.ts";
import { selfSignedCertificate } from "../support/certificate.ts";
import { bearer, keyedServer } from "../support/keys.ts";
import { testServer, until } from "../support/server.ts";

const SOLEHOLD = fileURLToPath(new URL("../../../cli/bin/solehold.js", import.meta.url));

/** Counts who comes, and answers nobody. */
async function listener(
  manner: "closes" | "keeps silent",
  host = "127.0.0.1",
): Promise<{ readonly port: number; visits(): number }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    if (manner === "closes") socket.destroy();
  });
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return { port: (server.address() as AddressInfo).port, visits: () => sockets.length };
}

describe("a client that was given an https address", () => {
  it("does not follow an announced http address, and is served where it was sent", async () => {
    const { cert, key } = await selfSignedCertificate();
    const evil = await listener("closes");
    const server = await keyedServer([{}], {
      tlsCert: cert,
      tlsKey: key,
      advertiseUrl: `http://127.0.0.1:${evil.port}`,
    });
    const url = server.url.replace("127.0.0.1", "localhost");
    await until("the address is announced", async () => {
      const page = await server.server.service.executor.list({
        ...{ tenant: "solehold", prefix: "replicas/", limit: 10 },
      });
      return page.leases.length === 1;
    });
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [SOLEHOLD, "acquire", "job", "--server", url, "--ttl", "30s", "--json"],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: cert, SOLEHOLD_API_KEY: server.keys[0] ?? "" } },
    );
    expect(JSON.parse(stdout)).toMatchObject({ key: "job" });
    expect(evil.visits()).toBe(0);
  });
});

describe("an announced address", () => {
  /** A client of a server over whose store a careless replica announced this; the server itself announces nothing. */
  async function clientOf(announced: string, given = "127.0.0.1"): Promise<Leases> {
    const server = await testServer({ behindProxy: "yes" });
    await server.server.service.executor.execute({
      ...{ op: "acquire", key: { tenant: "solehold", name: "replicas/careless" }, holder: "careless" },
      ...{ ttlMs: 3_600_000, note: `${announced} 1` },
    });
    expect((await server.get("/v1/replicas")).text).toContain(announced);
    const leases = await connect(server.url.replace("127.0.0.1", given), { holder: "me" });
    onTestFinished(async () => await leases.close());
    return leases;
  }

  it.each(["0.0.0.0", "[::]"])(
    "that is %s is not followed: it would be the client's own machine",
    async (host) => {
      const evil = await listener("closes", "::");
      const leases = await clientOf(`http://${host}:${evil.port}`);
      await (await leases.acquire("job", { ttl: "30s" })).release();
      expect(evil.visits()).toBe(0);
    },
  );

  it("without TLS of a host that the user did not name is not followed", async () => {
    const evil = await listener("closes");
    const leases = await clientOf(`http://127.0.0.1:${evil.port}`, "localhost");
    await (await leases.acquire("job", { ttl: "30s" })).release();
    expect(evil.visits()).toBe(0);
  });

  it.each(["ftp://127.0.0.1:1", "nonsense"])("that is none (%s) is not followed", async (announced) => {
    const leases = await clientOf(announced);
    await (await leases.acquire("job", { ttl: "30s" })).release();
  });

  it("where nobody answers leaves the given one in use", async () => {
    const silent = await listener("keeps silent");
    const leases = await clientOf(`http://127.0.0.1:${silent.port}`);
    for (const name of ["a", "b", "c"]) await (await leases.acquire(name, { ttl: "30s" })).release();
  });

  it("where somebody answered, and does no more, leaves the given one in use", async () => {
    const other = await testServer({ drainMs: "0" });
    const leases = await clientOf(other.url);
    await leases.acquire("job", { ttl: "30s" });
    expect((await other.get("/v1/lease?name=job")).body.holder).toBe("me");
    await other.server.close();
    await (await leases.acquire("another", { ttl: "30s" })).release();
  });
});

describe("a server", () => {
  it.each(["nonsense", "ftp://a", "http://0.0.0.0:7077", "https://[::]"])(
    "refuses to start with the address %s",
    (advertiseUrl) => {
      expect(() => resolveConfig({ flags: { advertiseUrl } })).toThrow(/--advertise-url must be an http/);
    },
  );

  it("announces no wildcard address and says so in its log", async () => {
    const server = await keyedServer([{}], { host: "0.0.0.0", behindProxy: "yes" });
    expect((await server.get("/v1/replicas", bearer(server.keys[0]))).body.replicas).toEqual([]);
    expect(server.logged.join("")).toMatch(/not announced to clients: --host 0\.0\.0\.0.*--advertise-url/);
  });

  it.each([
    [{}, "http://127.0.0.1:7077", "127.0.0.1:7077"],
    [{ host: "0.0.0.0" }, null, /.:7077$/],
    [{ host: "::" }, null, /.:7077$/],
    [{ behindProxy: "yes" }, null, /.:7077$/],
    [{ host: "0.0.0.0", nodeId: "a" }, null, "a"],
    [
      { host: "0.0.0.0", behindProxy: "yes", advertiseUrl: "https://x.example" },
      "https://x.example",
      "x.example",
    ],
  ])("with %j announces %s", (flags, url, nodeId) => {
    const announced = announcementOf(resolveConfig({ flags }), "http://127.0.0.1:7077");
    expect(announced.url).toBe(url);
    expect(announced.nodeId).toMatch(nodeId);
    expect(announced.obstacle === "").toBe(url !== null);
  });
});
